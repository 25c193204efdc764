// How long a command takes on the virtual device: a pure function of the costs, for device and
// simulator.
#pragma once

#include <cstdint>
#include <optional>

#include "device/virtual/costs.h"
#include "gpusched/policy/types.h"

namespace gpusched::device {

// No command asks for more: a module's figures may multiply to anything.
inline constexpr Duration kLongestWork = std::chrono::hours(1);

// What a command asks of the device.
struct Asked {
  SessionId session;
  Duration work{0};  // 0..kLongestWork: its kernel's or its copy's own time, before noise
  bool cut = false;  // a chunk of a launch, not the whole
};

// duration = launch_gap + (chunk if cut) + (switch if the session before was another) + work x
// noise, and the work of one command in 1 / outlier_probability takes outlier_factor as long.
//
// Noise has mean 1 and the given standard deviation, is bounded at three of them, and depends on
// (seed, stream, number of the command) only: the same commands in the same order take the same
// time.
class CostModel {
 public:
  explicit CostModel(const Costs& costs, std::uint64_t stream = 0)
      : costs_(costs), stream_(stream) {}

  // Of the `number`-th command of the device, `previous` being the session of the one before.
  Duration DurationOf(const Asked&, std::optional<SessionId> previous, std::uint64_t number) const;
  Duration CopyWork(std::uint64_t bytes) const;

 private:
  Duration Noisy(Duration work, std::uint64_t number) const;

  Costs costs_;
  std::uint64_t stream_;
};

}  // namespace gpusched::device
