// The same bytes in, once whole and once in parts; the bytes out side by side.
#include "support/opencl_cut_check.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "conformance/device_harness.h"
#include "device/backends.h"
#include "support/opencl_straight.h"

namespace gpusched::test {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Images = std::vector<Bytes>;  // of a case's buffers, in the order of its arguments
using Kind = CutCase::Argument::Kind;

constexpr int kMostParts = 12;
constexpr SessionId kSession{.slot = 0, .serial = 1};
constexpr std::uint64_t kQuota = 64 << 20;

class Checker {
 public:
  static Result<std::unique_ptr<Checker>> Open(const std::string& cache_dir, std::uint64_t seed) {
    auto checker = std::unique_ptr<Checker>(new Checker(seed));
    device::DeviceOptions options;
    options.kind = "opencl";
    options.cache_dir = cache_dir;
    auto devices = device::OpenDevices(
        options, [&](std::size_t, const device::DeviceInfo&) { return &checker->sink_; });
    if (!devices) {
      const bool none = devices.status().code() == StatusCode::kUnavailable;
      return Status(none ? StatusCode::kNotFound : devices.status().code(),
                    devices.status().reason(), devices.status().message());
    }
    checker->device_ = std::move(devices->front());
    checker->orders_ = std::make_unique<device::Orders>(*checker->device_, checker->sink_);
    auto straight = StraightOpenCl::Open(checker->device_->info().name);
    if (!straight) return straight.status();
    checker->straight_ = *std::move(straight);
    const Status opened = checker->device_->OpenSession(kSession, {.memory_bytes = kQuota});
    if (!opened.ok()) return opened;
    return checker;
  }

  CutCheckOutcome Check(const CutCase& of, int cuts) {
    CutCheckOutcome outcome{.construct = of.construct, .difference = {}};
    Images before;
    for (const CutCase::Argument& argument : of.arguments) {
      if (argument.kind != Kind::kBuffer) continue;
      Bytes& bytes = before.emplace_back(argument.bytes);
      if (!argument.zeros) std::generate(bytes.begin(), bytes.end(), std::ref(random_));
    }
    const Result<Images> whole = Straight(of, before), again = Straight(of, before);
    if (!whole || !again) {
      outcome.difference = "whole: " + (whole ? again : whole).status().ToString();
      return outcome;
    }
    outcome.unsteady = *whole != *again;
    if (outcome.unsteady) return outcome;
    if (Status status = LoadOnDevice(of); !status.ok()) {
      outcome.difference = status.ToString();
      return outcome;
    }
    while (outcome.cuts < cuts && outcome.difference.empty()) {
      outcome.difference = Cut(of, before, *whole);
      ++outcome.cuts;
    }
    Unload(of);
    return outcome;
  }

 private:
  explicit Checker(std::uint64_t seed) : random_(seed) {}

  Result<Images> Straight(const CutCase& of, const Images& before) {
    if (Status status = straight_->Build(of.source); !status.ok()) return status;
    straight_->FreeAll();
    StraightLaunch launch{.kernel = "k", .offset = {}, .global = {}, .local = {}, .arguments = {}};
    const auto add = [&](std::uint32_t grid, std::uint32_t block, std::uint32_t offset) {
      launch.global.push_back(std::size_t{grid} * block);
      launch.local.push_back(block);
      launch.offset.push_back(offset);
    };
    add(of.grid.x, of.block.x, of.offset.x);
    const bool third = of.grid.z > 1 || of.block.z > 1 || of.offset.z > 0;
    if (third || of.grid.y > 1 || of.block.y > 1 || of.offset.y > 0) {
      add(of.grid.y, of.block.y, of.offset.y);
    }
    if (third) add(of.grid.z, of.block.z, of.offset.z);
    for (const CutCase::Argument& argument : of.arguments) {
      if (Status status = AddStraight(argument, before, launch); !status.ok()) return status;
    }
    if (Status status = straight_->Enqueue(launch); !status.ok()) return status;
    Images after = before;
    for (std::size_t i = 0; i < after.size(); ++i) {
      Status status = straight_->Read(i, after[i].data(), after[i].size());
      if (!status.ok()) return status;
    }
    return after;
  }

  Status AddStraight(const CutCase::Argument& argument, const Images& before,
                     StraightLaunch& launch) {
    StraightArgument given;
    switch (argument.kind) {
      case Kind::kBuffer: {
        const Result<std::size_t> buffer = straight_->Allocate(argument.bytes);
        if (!buffer) return buffer.status();
        given.buffer = *buffer;
        launch.arguments.push_back(std::move(given));
        return straight_->Write(*buffer, before[*buffer].data(), argument.bytes);
      }
      case Kind::kValue:
        given.kind = StraightArgument::Kind::kValue;
        given.value = device::Value(argument.value);
        break;
      case Kind::kLocal:
        given.kind = StraightArgument::Kind::kLocal;
        given.local_bytes = argument.bytes;
        break;
    }
    launch.arguments.push_back(std::move(given));
    return Status::Ok();
  }

  Status LoadOnDevice(const CutCase& of) {
    const device::Image image{.format = device::Image::Format::kOpenClC, .bytes = of.source};
    const device::Prepared loaded = orders_->Load(kSession, 1, image);
    if (!loaded.status.ok()) return loaded.status;
    for (std::uint32_t i = 0; i < loaded.module.kernels.size(); ++i) {
      if (loaded.module.kernels[i].name != "k") continue;
      kernel_ = i;
      if (loaded.module.kernels[i].cuttable) continue;
      return Status(StatusCode::kFailedPrecondition, "RUNS_WHOLE",
                    "it runs whole: " + loaded.module.kernels[i].whole_reason);
    }
    device::BufferId id = 0;
    for (const CutCase::Argument& argument : of.arguments) {
      if (argument.kind != Kind::kBuffer) continue;
      if (Status status = orders_->Allocate(kSession, ++id, argument.bytes); !status.ok()) {
        return status;
      }
    }
    return Status::Ok();
  }

  void Unload(const CutCase& of) {
    device::BufferId id = 0;
    for (const CutCase::Argument& argument : of.arguments) {
      if (argument.kind == Kind::kBuffer) (void)orders_->Free(kSession, ++id);
    }
    (void)orders_->Carry(device::UnloadModule{.session = kSession, .module = 1});
  }

  // One random partition; what differed, "" if nothing.
  std::string Cut(const CutCase& of, const Images& before, const Images& expected) {
    std::vector<device::Argument> arguments;
    device::BufferId id = 0;
    for (const CutCase::Argument& argument : of.arguments) {
      switch (argument.kind) {
        case Kind::kBuffer: arguments.emplace_back(device::BufferArgument{.buffer = ++id}); break;
        case Kind::kValue: arguments.emplace_back(device::Value(argument.value)); break;
        case Kind::kLocal: arguments.emplace_back(device::LocalArgument{argument.bytes}); break;
      }
    }
    for (std::size_t i = 0; i < before.size(); ++i) orders_->Write(kSession, i + 1, before[i]);
    device::LaunchCommand launch =
        orders_->Launch(kSession, 1, kernel_, of.grid, of.block, std::move(arguments));
    launch.offset = of.offset;
    const std::vector<std::uint64_t> ends = RandomEnds(launch.count);
    std::string partition;
    device::Ticket last{};
    for (const std::uint64_t end : ends) {
      launch.count = end - launch.first;
      partition += " " + std::to_string(end);
      last = orders_->Start({launch});
      launch.first = end;
    }
    const device::Completion done = sink_.Finished(last);
    if (!done.error.ok()) return done.error.ToString();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Bytes got = orders_->Read<std::uint8_t>(kSession, i + 1, expected[i].size());
      const auto [at, _] = std::mismatch(got.begin(), got.end(), expected[i].begin());
      if (at == got.end()) continue;
      return "byte " + std::to_string(at - got.begin()) + " of buffer " + std::to_string(i) +
             ", parts ending at" + partition;
    }
    return "";
  }

  // The ends of 2 to kMostParts parts, the last of which is `count`.
  std::vector<std::uint64_t> RandomEnds(std::uint64_t count) {
    std::vector<std::uint64_t> ends{count};
    const auto parts = 2 + random_() % (kMostParts - 1);
    while (ends.size() < parts) ends.push_back(1 + random_() % (count - 1));
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    return ends;
  }

  std::mt19937_64 random_;
  device::RecordingSink sink_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::Orders> orders_;
  std::unique_ptr<StraightOpenCl> straight_;
  std::uint32_t kernel_ = 0;
};

}  // namespace

Result<std::vector<CutCheckOutcome>> CheckOpenClCuts(const std::vector<CutCase>& cases, int cuts,
                                                     std::uint64_t seed,
                                                     const std::string& cache_dir) {
  Result<std::unique_ptr<Checker>> checker = Checker::Open(cache_dir, seed);
  if (!checker) return checker.status();
  std::vector<CutCheckOutcome> outcomes;
  for (const CutCase& each : cases) outcomes.push_back((*checker)->Check(each, cuts));
  return outcomes;
}

}  // namespace gpusched::test
