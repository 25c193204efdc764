// Maps a device's time stamps to the executor's clock, and corrects itself with every command.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "gpusched/policy/types.h"

namespace gpusched::device {

// The device stamps a command while it is being enqueued, so the stamp lies between two readings of
// our clock: an interval for the offset. Each command moves the offset into its interval by as
// little as it can, so the estimate tightens while the clocks run alike and follows them when they
// drift.
class ClockMap {
 public:
  void Observe(Time before, std::uint64_t stamp_ns, Time after) {
    const std::int64_t least = before.time_since_epoch().count() - Signed(stamp_ns);
    const std::int64_t greatest = after.time_since_epoch().count() - Signed(stamp_ns);
    offset_ns_ = std::clamp(offset_ns_.value_or(least), least, std::max(least, greatest));
  }
  // After the first Observe.
  Time Map(std::uint64_t stamp_ns) const {
    return Time(Duration(Signed(stamp_ns) + offset_ns_.value_or(0)));
  }

 private:
  static std::int64_t Signed(std::uint64_t stamp_ns) { return static_cast<std::int64_t>(stamp_ns); }

  std::optional<std::int64_t> offset_ns_;
};

}  // namespace gpusched::device
