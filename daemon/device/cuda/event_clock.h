// Maps the times between CUDA's events to the executor's clock, and corrects itself all the time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "gpusched/policy/types.h"

namespace gpusched::device {

// Events tell only how long it is from one to another, as a float of milliseconds: each command's
// times are counted on from the end of the command before, so the float stays short of its limits.
// That a command began after it was submitted and ended before its end was seen gives an interval
// for the offset between the two clocks; each command moves the offset into its interval by as
// little as it can, so what is lost in rounding, or after hours without a command, does no harm.
class EventClock {
 public:
  struct Span {
    Time started{}, ended{};
  };

  // `since_last` from the last command's end to this one's start, both in device time; any number
  // for the first.
  Span Place(Duration since_last, Duration length, Time submitted, Time seen) {
    const Duration start = last_end_ + since_last;
    last_end_ = start + length;
    const Duration least = submitted.time_since_epoch() - start;
    const Duration greatest = seen.time_since_epoch() - last_end_;
    offset_ = std::clamp(offset_.value_or(greatest), least, std::max(least, greatest));
    Span span{Time(start + *offset_), Time(last_end_ + *offset_)};
    span.ended = std::clamp(span.ended, submitted, seen);
    span.started = std::clamp(span.started, submitted, span.ended);
    return span;
  }

 private:
  Duration last_end_{0};
  std::optional<Duration> offset_;
};

}  // namespace gpusched::device
