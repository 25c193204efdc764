// How long a kind of command takes per unit, learned from those that ran: when to look for its end.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpusched/policy/types.h"

namespace gpusched::device {

class ExpectedTime {
 public:
  void Learn(std::uint64_t units, Duration took) {
    if (units == 0) return;
    const double each = static_cast<double>(took.count()) / static_cast<double>(units);
    ns_each_ = ns_each_ == 0 ? each : ns_each_ + (each - ns_each_) / 4;
  }
  // Zero where nothing is known.
  Duration Of(std::uint64_t units) const {
    constexpr double kLongest = 3.6e12;  // an hour
    return Duration(
        static_cast<std::int64_t>(std::min(kLongest, ns_each_ * static_cast<double>(units))));
  }

 private:
  double ns_each_ = 0;
};

// So long until the next look at a command that is to end at `expected`.
inline Duration LookAgainIn(Time now, Time expected) {
  // A look costs about a microsecond, a wake-up for it twenty; a longer wait than the longest would
  // be felt where the expectation is wrong.
  constexpr Duration kShortest = std::chrono::microseconds(20);
  constexpr Duration kLongest = std::chrono::milliseconds(1);
  const Duration wait = expected > now ? expected - now : (now - expected) / 4;
  return std::clamp(wait, kShortest, kLongest);
}

}  // namespace gpusched::device
