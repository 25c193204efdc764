// Through our own CUDA device: cut launches against whole ones in result, time and waiting.
//
// The argument is the PTX of kernels.cu. Linked with the CUDA runtime it measures a GPU; linked
// with the stand-in it only checks that the program itself works, and then prints no times.
#include <time.h>

#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "conformance/device_harness.h"
#include "device/cuda/platform.h"
#include "device/polled_device.h"
#include "figure.h"

namespace gpusched::gpu {
namespace {

using device::Argument;
using device::BufferArgument;
using device::Completion;
using device::Device;
using device::DeviceInfo;
using device::Dim3;
using device::LaunchCommand;
using device::Orders;
using device::RecordingSink;
using device::Ticket;
using device::Value;
using device::Volume;

constexpr SessionId kLow{.slot = 0, .serial = 1}, kHigh{.slot = 1, .serial = 2};
constexpr device::ModuleId kModule = 1;
constexpr std::size_t kWords = 1 << 20;
constexpr int kCuts = 20, kArrivals = 200;

struct Machine {
  std::unique_ptr<Device> device;
  device::ModuleInfo module;
  std::string ptx;
  bool stand_in = false;

  std::uint32_t Kernel(const std::string& name) const {
    for (std::uint32_t i = 0; i < module.kernels.size(); ++i) {
      if (module.kernels[i].name == name) return i;
    }
    throw std::runtime_error("no kernel " + name);
  }
};

std::unique_ptr<Device> Open(device::CompletionSink& sink) {
  auto devices =
      device::OpenCuda({.count = 1}, [&](std::size_t, const DeviceInfo&) { return &sink; });
  if (!devices.ok()) throw std::runtime_error(devices.status().ToString());
  return std::move(devices->front());
}

void Load(Orders& orders, Machine& machine, SessionId session, std::uint64_t buffers) {
  if (!machine.device->OpenSession(session, {.memory_bytes = 64 << 20}).ok()) {
    throw std::runtime_error("no session");
  }
  const device::Prepared loaded =
      orders.Load(session, kModule, {device::Image::Format::kPtx, machine.ptx});
  if (!loaded.status.ok()) throw std::runtime_error(loaded.status.ToString());
  machine.module = loaded.module;
  for (std::uint64_t buffer = 1; buffer <= buffers; ++buffer) {
    if (!orders.Allocate(session, buffer, kWords * 4).ok()) throw std::runtime_error("no memory");
  }
}

// A kernel of kernels.cu with its launch: buffers 1 (out), 2 and 3 (in).
struct Case {
  std::string kernel;
  Dim3 grid, block;
  std::vector<Argument> arguments;
};

// Cutting is compared on the machine itself, so the sizes on the stand-in are small.
std::vector<Case> Cases(bool small) {
  const BufferArgument out{.buffer = 1}, left{.buffer = 2}, right{.buffer = 3};
  const std::uint32_t tiles = small ? 3 : 32, blocks = small ? 5 : 1'000;
  const Argument side = Value(tiles * 16);
  return {{"product", {tiles, tiles}, {16, 16}, {out, left, right, side}},
          {"transpose", {tiles, tiles}, {16, 16}, {out, left, side}},
          {"reduce", {blocks}, {256}, {out, BufferArgument{.buffer = 4}, left}},
          {"histogram", {blocks}, {256}, {out, left}},
          {"scan", {blocks}, {256}, {out, left}},
          {"sort", {blocks}, {256}, {out, left}}};
}

class CutAgainstWhole {
 public:
  CutAgainstWhole(Orders& orders, const Machine& machine) : orders_(orders), machine_(machine) {
    std::mt19937 random(1);
    in_.resize(kWords);
    for (std::uint32_t& word : in_) word = random() % 1'000;
  }

  // Random cuts that differ from the whole.
  int Differences(const Case& test) {
    const auto whole = Run(test, {});
    std::mt19937_64 random(7);
    int differ = 0;
    for (int i = 0; i < kCuts; ++i) {
      std::vector<std::uint64_t> ends;
      const std::uint64_t blocks = Volume(test.grid);
      for (std::uint64_t at = 0; at < blocks;) {
        at += 1 + random() % std::max<std::uint64_t>(1, blocks / 3);
        ends.push_back(std::min(at, blocks));
      }
      if (Run(test, ends) != whole) ++differ;
    }
    return differ;
  }

 private:
  std::vector<std::uint32_t> Run(const Case& test, const std::vector<std::uint64_t>& ends) {
    for (const device::BufferId buffer : {1, 4}) {
      orders_.Run({device::FillCommand{
          .session = kLow, .buffer = buffer, .count = kWords * 4, .total = kWords * 4}});
    }
    for (const device::BufferId buffer : {2, 3}) orders_.Write(kLow, buffer, in_);
    LaunchCommand launch = orders_.Launch(kLow, kModule, machine_.Kernel(test.kernel), test.grid,
                                          test.block, test.arguments);
    if (ends.empty()) {
      Expect(orders_.Run({launch}));
    }
    for (const std::uint64_t end : ends) {
      launch.count = end - launch.first;
      Expect(orders_.Run({launch}));
      launch.first = end;
    }
    auto out = orders_.Read<std::uint32_t>(kLow, 1, kWords);
    out.push_back(orders_.Read<std::uint32_t>(kLow, 4, 1)[0]);
    return out;
  }
  static void Expect(const Completion& completion) {
    if (completion.outcome != Completion::Outcome::kDone) {
      throw std::runtime_error(completion.error.ToString());
    }
  }

  Orders& orders_;
  const Machine& machine_;
  std::vector<std::uint32_t> in_;
};

// Plays the executor on one thread: starts, sleeps as long as the device asks for, collects.
class Pump final : public device::CompletionSink {
 public:
  void Post(Completion completion) override { done_[completion.ticket] = completion; }
  void Post(device::Prepared) override {}
  void Post(device::Lost) override {}
  void Post(device::Restored) override {}

  void Use(Device& device) { device_ = &device; }
  Ticket Start(const LaunchCommand& launch) {
    const Ticket ticket{++last_};
    device_->Start(ticket, {.what = launch, .submitted = device::DeviceNow()});
    return ticket;
  }
  // One look; sleeps until the next unless `due` is nearer.
  void Look(Time due = kNever) {
    const Time now = device::DeviceNow();
    const Duration pause = std::min(device_->Poll(now), due == kNever ? kForever : due - now);
    if (!done_.empty() || pause <= Duration::zero()) return;
    const std::int64_t ns = std::min<std::int64_t>(pause.count(), 1'000'000);
    const timespec wait{.tv_sec = 0, .tv_nsec = ns};
    nanosleep(&wait, nullptr);
  }
  std::map<Ticket, Completion> Take() { return std::exchange(done_, {}); }
  Completion Await(Ticket ticket) {
    while (!done_.contains(ticket)) Look();
    const Completion completion = done_[ticket];
    done_.erase(ticket);
    return completion;
  }

 private:
  Device* device_ = nullptr;
  std::uint64_t last_ = 1'000'000;
  std::map<Ticket, Completion> done_;
};

double Us(Duration d) { return static_cast<double>(d.count()) / 1e3; }

// Best effort in chunks of a chosen time with two in flight, and what arrives beside it.
class Beside {
 public:
  Beside(Pump& pump, const Machine& machine)
      : pump_(pump), machine_(machine), waves_(machine.device->info().compute_units * 4) {
    const Duration once = RunWhole(Spin(kLow, waves_, 20'000));
    rounds_per_us_ = 20'000 / Us(RunWhole(Spin(kLow, waves_, 20'000)));
    (void)once;  // the first launch loads code
  }

  void MeasureGapAndCost() {
    // 100 waves of 200 us: whole, then in chunks of two and a half.
    const auto rounds = static_cast<std::uint32_t>(200 * rounds_per_us_);
    const LaunchCommand whole = Spin(kLow, waves_ * 100, rounds);
    std::vector<double> gaps, ratios;
    for (int i = 0; i < 5; ++i) {
      const Duration alone = RunWhole(whole);
      LaunchCommand chunk = whole;
      chunk.count = waves_ * 2;
      std::deque<Ticket> flying;
      Time first{}, last{};
      while (chunk.first < Volume(whole.grid) || !flying.empty()) {
        while (flying.size() < 2 && chunk.first < Volume(whole.grid)) {
          flying.push_back(pump_.Start(chunk));
          chunk.first += chunk.count;
        }
        const Completion done = pump_.Await(flying.front());
        flying.pop_front();
        if (first == Time{}) first = done.started;
        if (last != Time{}) gaps.push_back(Us(done.started - last));
        last = done.ended;
      }
      ratios.push_back(Us(last - first) / Us(alone));
    }
    Print("chunks of 400 us, two in flight: gap between them, p50", Quantile(gaps, 0.5), "us");
    Print("a kernel of 20 ms in such chunks, against whole", Quantile(ratios, 0.5), "x");
  }

  void MeasureWaits(double us) {
    const auto rounds = static_cast<std::uint32_t>(us * rounds_per_us_);
    const LaunchCommand small = Spin(kHigh, waves_, std::max(1u, rounds));
    const double alone = Us(RunWhole(small));
    LaunchCommand chunk =
        Spin(kLow, waves_ * 4, static_cast<std::uint32_t>(100 * rounds_per_us_));  // 400 us
    std::mt19937 random(3);
    std::deque<Ticket> flying;
    std::vector<double> waits;
    const int arrivals = us > 1'000 ? kArrivals / 4 : kArrivals;
    for (int i = 0; i < arrivals; ++i) {
      const Time due = device::DeviceNow() + std::chrono::microseconds(500 + random() % 3'000);
      while (device::DeviceNow() < due) {
        while (flying.size() < 2) flying.push_back(pump_.Start(chunk));
        pump_.Look(due);
        Collect(flying);
      }
      const Time asked = device::DeviceNow();
      const Completion done = pump_.Await(pump_.Start(small));
      waits.push_back(Us(done.ended - asked) - alone);
      Collect(flying);
    }
    while (!flying.empty()) {
      pump_.Look();
      Collect(flying);
    }
    const std::string name = "wait beside best effort, cut in chunks of 400 us, kernel of " +
                             std::to_string(static_cast<int>(us)) + " us";
    Print(name + ", p50", Quantile(waits, 0.5), "us");
    Print(name + ", p99", Quantile(waits, 0.99), "us");
  }

 private:
  LaunchCommand Spin(SessionId session, std::uint64_t blocks, std::uint32_t rounds) {
    kept_.push_back({BufferArgument{.buffer = 1}, Value(rounds)});
    const Dim3 grid{static_cast<std::uint32_t>(blocks)};
    return {.session = session,
            .module = kModule,
            .kernel = machine_.Kernel("spin"),
            .grid = grid,
            .block = {64},
            .arguments = &kept_.back(),
            .count = blocks};
  }
  Duration RunWhole(const LaunchCommand& launch) {
    const Completion done = pump_.Await(pump_.Start(launch));
    return done.ended - done.started;
  }
  void Collect(std::deque<Ticket>& flying) {
    for (const auto& [ticket, completion] : pump_.Take()) std::erase(flying, ticket);
  }

  Pump& pump_;
  const Machine& machine_;
  const std::uint64_t waves_;  // blocks that run side by side, about
  double rounds_per_us_ = 1;
  std::deque<std::vector<Argument>> kept_;
};

int CompareCuts(Machine& machine) {
  RecordingSink sink;
  machine.device = std::make_unique<device::PolledDevice>(Open(sink));
  Orders orders(*machine.device, sink);
  Load(orders, machine, kLow, 4);
  int differ = 0;
  CutAgainstWhole compare(orders, machine);
  for (const Case& test : Cases(machine.stand_in)) {
    const device::KernelInfo& info = machine.module.kernels[machine.Kernel(test.kernel)];
    if (!info.cuttable) {
      PrintNotRun("cut against whole: " + test.kernel, info.whole_reason);
      ++differ;
      continue;
    }
    const int wrong = compare.Differences(test);
    Print(
        "cut against whole: " + test.kernel + ", cuts of " + std::to_string(kCuts) + " that differ",
        wrong, "");
    differ += wrong;
  }
  machine.device.reset();
  return differ;
}

void MeasureTimes(Machine& machine) {
  Pump pump;
  // Preparations are waited for by a sink that locks; the rest is measured without one.
  struct Both final : device::CompletionSink {
    RecordingSink prepared;
    Pump* pump = nullptr;
    void Post(Completion completion) override { pump->Post(std::move(completion)); }
    void Post(device::Prepared answer) override { prepared.Post(std::move(answer)); }
    void Post(device::Lost lost) override {
      std::fprintf(stderr, "%s\n", lost.why.message().c_str());
      std::exit(1);
    }
    void Post(device::Restored) override {}
  } both;
  both.pump = &pump;
  machine.device = Open(both);
  pump.Use(*machine.device);
  Orders orders(*machine.device, both.prepared);
  Load(orders, machine, kLow, 1);
  Load(orders, machine, kHigh, 1);
  Beside beside(pump, machine);
  beside.MeasureGapAndCost();
  for (const double us : {20.0, 100.0, 1'000.0, 10'000.0}) beside.MeasureWaits(us);
}

}  // namespace
}  // namespace gpusched::gpu

int main(int argc, char** argv) {
  using namespace gpusched::gpu;
  const bool stand_in = argc == 3 && std::strcmp(argv[2], "--stand-in") == 0;
  if (argc != 2 && !stand_in) {
    std::fprintf(stderr, "usage: device_figures KERNELS.PTX [--stand-in]\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  Machine machine;
  machine.ptx.assign(std::istreambuf_iterator<char>(file), {});
  machine.stand_in = stand_in;
  try {
    const int differ = CompareCuts(machine);
    if (!machine.stand_in) MeasureTimes(machine);
    return differ == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_figures: %s\n", error.what());
    return 1;
  }
}
