// Work straight on OpenCL, as a program without gpusched does it: what promises compare with.
//
// Obeys lines on its input and answers with numbers, one a line, and a line "done":
//   spin BLOCKS ROUNDS N               milliseconds of N launches, one after the other
//   paced BLOCKS ROUNDS PERIOD_US N SEED   milliseconds from when each was due, at random phase
//   begin BLOCKS ROUNDS, end           endless launches meanwhile; end answers launches a second
//   chain ROUNDS_PER_US N              milliseconds of N chains, two outstanding
//   piglit PATH                        a line for each of the file's tests: 1 passed, 0 not
//   kernels                            milliseconds of each of straight_kernels.h, median
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "promises/straight_kernels.h"
#include "support/opencl_straight.h"
#include "support/piglit_file.h"
#include "support/spin_kernel.h"

namespace gpusched::bench {
namespace {

using Clock = std::chrono::steady_clock;
using test::StraightArgument;
using test::StraightLaunch;
using test::StraightOpenCl;

constexpr std::uint32_t kMostBlocks = 8'192;
constexpr int kOutstanding = 2;
constexpr int kRepeats = 9;

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

void Say(double number) { std::printf("%.4f\n", number); }

// Ends the program with the reason: whoever started it shows it.
void Must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

StraightLaunch LaunchOf(const Spin& spin) {
  std::string rounds(sizeof spin.rounds, '\0');
  std::memcpy(rounds.data(), &spin.rounds, sizeof spin.rounds);
  return {.kernel = "spin",
          .offset = {},
          .global = {std::size_t{spin.blocks} * kSpinBlock},
          .local = {kSpinBlock},
          .arguments = {{.buffer = 0},
                        {.kind = StraightArgument::Kind::kValue, .value = std::move(rounds)}}};
}

class Worker {
 public:
  explicit Worker(std::unique_ptr<StraightOpenCl> opencl) : opencl_(std::move(opencl)) {}
  ~Worker() { End(); }

  void Spins(const Spin& spin, int count) {
    BuildSpin();
    for (int i = 0; i < count; ++i) {
      const auto begin = Clock::now();
      Must(opencl_->Enqueue(LaunchOf(spin)));
      Must(opencl_->Finish());
      Say(MillisecondsSince(begin));
    }
  }

  void Paced(const Spin& spin, std::chrono::microseconds period, int count, std::uint64_t seed) {
    BuildSpin();
    Random random(seed);
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) {
      const std::chrono::microseconds phase(random.Below(period.count()));
      const auto due = start + i * period + phase;
      std::this_thread::sleep_until(due);
      Must(opencl_->Enqueue(LaunchOf(spin)));
      Must(opencl_->Finish());
      Say(MillisecondsSince(due));
    }
  }

  void Begin(const Spin& spin) {
    BuildSpin();
    stopping_ = false;
    thread_ = std::thread([this, spin] {
      std::deque<std::size_t> marks;
      int finished = 0;
      const auto begin = Clock::now();
      while (!stopping_) {
        while (marks.size() < kOutstanding) {
          Must(opencl_->Enqueue(LaunchOf(spin)));
          const Result<std::size_t> mark = opencl_->Mark();
          Must(mark.status());
          marks.push_back(*mark);
        }
        Must(opencl_->Await(marks.front()));
        marks.pop_front();
        ++finished;
      }
      per_second_ = finished * 1'000 / MillisecondsSince(begin);
      Must(opencl_->Finish());
    });
  }
  double End() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    return per_second_;
  }

  void Chains(double rounds_per_us, int count) {
    BuildSpin();
    const std::vector<Spin> chain = ChainOfSpins(rounds_per_us);
    std::deque<std::size_t> marks;
    auto ended = Clock::now();
    for (int started = 0, finished = 0; finished < count; ++finished) {
      while (started < count && marks.size() < kOutstanding) {
        for (const Spin& spin : chain) Must(opencl_->Enqueue(LaunchOf(spin)));
        const Result<std::size_t> mark = opencl_->Mark();
        Must(mark.status());
        marks.push_back(*mark);
        ++started;
      }
      Must(opencl_->Await(marks.front()));
      marks.pop_front();
      Say(MillisecondsSince(ended));
      ended = Clock::now();
    }
  }

  void Piglit(const std::string& path) {
    const Result<test::PiglitFile> file = test::ReadPiglitFile(path);
    Must(file.status());
    const bool builds = opencl_->Build(file->source).ok();
    for (const test::PiglitTest& each : file->tests) Say(builds && Passes(each) ? 1 : 0);
    spins_ = false;
  }

  void Kernels() {
    for (const StraightKernel& kernel : kStraightKernels) Say(MedianOf(kernel));
    spins_ = false;
  }

 private:
  // What is built last is what can run.
  void BuildSpin() {
    if (std::exchange(spins_, true)) return;
    opencl_->FreeAll();
    Must(opencl_->Build(kSpinSource));
    Must(opencl_->Allocate(kMostBlocks * kSpinBlock * sizeof(float)).status());
    // Compiles for the launch, and touches the memory.
    Must(opencl_->Enqueue(LaunchOf({.blocks = kMostBlocks, .rounds = 1})));
    Must(opencl_->Finish());
  }

  bool Passes(const test::PiglitTest& each) {
    using Kind = test::PiglitArgument::Kind;
    opencl_->FreeAll();
    StraightLaunch launch{.kernel = each.kernel,
                          .offset = {},
                          .global = {each.global.begin(), each.global.begin() + each.dimensions},
                          .local = {each.local.begin(), each.local.begin() + each.dimensions},
                          .arguments = {}};
    if (each.local[0] == 0) launch.local.clear();
    for (const test::PiglitArgument& argument : each.arguments) {
      StraightArgument given;
      if (argument.kind == Kind::kValue) {
        given.kind = StraightArgument::Kind::kValue;
        given.value.assign(argument.in.begin(), argument.in.end());
      } else if (argument.kind == Kind::kLocal) {
        given.kind = StraightArgument::Kind::kLocal;
        given.local_bytes = argument.in.size();
      } else {
        const Result<std::size_t> buffer = opencl_->Allocate(argument.in.size());
        if (!buffer || !opencl_->Write(*buffer, argument.in.data(), argument.in.size()).ok())
          return false;
        given.buffer = *buffer;
      }
      launch.arguments.push_back(std::move(given));
    }
    if (!opencl_->Enqueue(launch).ok() || !opencl_->Finish().ok()) return false;
    for (std::size_t i = 0; i < each.arguments.size(); ++i) {
      if (each.arguments[i].kind != Kind::kBuffer) continue;
      std::vector<std::uint8_t> got(each.arguments[i].in.size());
      if (!opencl_->Read(launch.arguments[i].buffer, got.data(), got.size()).ok()) return false;
      if (!each.arguments[i].Accepts(got)) return false;
    }
    return true;
  }

  double MedianOf(const StraightKernel& kernel) {
    opencl_->FreeAll();
    Must(opencl_->Build(kernel.source));
    StraightLaunch launch{.kernel = "k",
                          .offset = {},
                          .global = {kernel.global[0]},
                          .local = {kernel.local[0]},
                          .arguments = {{.buffer = 0}, {.buffer = 1}}};
    if (kernel.global[1] > 0) {
      launch.global.push_back(kernel.global[1]);
      launch.local.push_back(kernel.local[1]);
    }
    const std::vector<char> zeros(kStraightBufferBytes);
    for (std::size_t buffer = 0; buffer < 2; ++buffer) {
      Must(opencl_->Allocate(kStraightBufferBytes).status());
      Must(opencl_->Write(buffer, zeros.data(), zeros.size()));
    }
    std::vector<double> times;
    for (int i = -1; i < kRepeats; ++i) {  // the first compiles
      const auto begin = Clock::now();
      Must(opencl_->Enqueue(launch));
      Must(opencl_->Finish());
      if (i >= 0) times.push_back(MillisecondsSince(begin));
    }
    std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
    return times[kRepeats / 2];
  }

  std::unique_ptr<StraightOpenCl> opencl_;
  bool spins_ = false;  // the spin kernel is built
  std::atomic<bool> stopping_{false};
  double per_second_ = 0;
  std::thread thread_;
};

void Obey(Worker& worker, const std::string& line) {
  std::istringstream words(line);
  std::string what;
  words >> what;
  if (what == "spin") {
    Spin spin;
    int count = 0;
    words >> spin.blocks >> spin.rounds >> count;
    worker.Spins(spin, count);
  } else if (what == "paced") {
    Spin spin;
    int count = 0;
    std::int64_t period_us = 0;
    std::uint64_t seed = 0;
    words >> spin.blocks >> spin.rounds >> period_us >> count >> seed;
    worker.Paced(spin, std::chrono::microseconds(period_us), count, seed);
  } else if (what == "begin") {
    Spin spin;
    words >> spin.blocks >> spin.rounds;
    worker.Begin(spin);
  } else if (what == "end") {
    Say(worker.End());
  } else if (what == "chain") {
    double rounds_per_us = 0;
    int count = 0;
    words >> rounds_per_us >> count;
    worker.Chains(rounds_per_us, count);
  } else if (what == "piglit") {
    std::string path;
    std::getline(words >> std::ws, path);
    worker.Piglit(path);
  } else if (what == "kernels") {
    worker.Kernels();
  }
  std::printf("done\n");
  std::fflush(stdout);
}

int Main() {
  Result<std::unique_ptr<StraightOpenCl>> opencl = StraightOpenCl::Open();
  Must(opencl.status());
  Worker worker(*std::move(opencl));
  std::printf("done\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) Obey(worker, line);
  return 0;
}

}  // namespace
}  // namespace gpusched::bench

int main(int argc, char**) {
  if (argc > 1) {
    std::fprintf(stderr, "usage: gpusched-straight, without arguments\n");
    return 2;
  }
  return gpusched::bench::Main();
}
