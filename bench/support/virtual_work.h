// Jobs for the virtual device that ask for a given device time, and the module that they need.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "gpusched/client.h"
#include "support/work.h"

namespace gpusched::bench {

// Work comes in blocks of this: finer than any chunk, coarse enough that grids stay small.
inline constexpr Duration kBlockTime = std::chrono::microseconds(10);

// `work` can be cut between blocks, `whole` cannot; both take kBlockTime a block.
inline constexpr std::string_view kWorkModule =
    "kernel work time_per_block=10us\n"
    "kernel whole time_per_block=10us cuttable=no\n";

// To the nearest block, at least one.
inline Dim3 GridOf(Duration work) {
  const std::int64_t blocks = (work + kBlockTime / 2) / kBlockTime;
  return {.x = static_cast<std::uint32_t>(std::clamp<std::int64_t>(blocks, 1, UINT32_MAX))};
}

// `work` as launches of `longest` and one of what is left.
inline Job LaunchesOf(const Kernel& kernel, Duration work, Duration longest) {
  Job job;
  for (Duration left = work; left > Duration::zero(); left -= std::min(left, longest)) {
    job.Launch(kernel, GridOf(std::min(left, longest)), Dim3{});
  }
  return job;
}

struct VirtualWorkOptions {
  std::string kernel = "work";                      // of kWorkModule
  Duration longest = std::chrono::milliseconds(1);  // a job is cut into launches of at most this
};
// Jobs of whatever time the arrivals ask for.
MakeWork VirtualWork(const VirtualWorkOptions& options);

}  // namespace gpusched::bench
