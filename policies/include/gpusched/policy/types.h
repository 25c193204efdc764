// The words a policy and the core share: time, session, share, and their units.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>

namespace gpusched {

// A clock without now(): a Time is handed in by whoever drives the core (the executor's steady
// clock or the simulator), never read. Its epoch is the driver's.
struct SchedulerClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SchedulerClock, duration>;
  static constexpr bool is_steady = true;
};

using Duration = SchedulerClock::duration;
using Time = SchedulerClock::time_point;
inline constexpr Time kNever = Time::max();
inline constexpr Duration kForever = Duration::max();

// t + d, staying at kNever where either is endless or the sum does not fit.
constexpr Time After(Time t, Duration d) {
  if (t == kNever || d == kForever) return kNever;
  if (d > Duration::zero() && t.time_since_epoch() > kForever - d) return kNever;
  return t + d;
}

// a + b, staying at kForever where either is endless or the sum does not fit.
constexpr Duration Plus(Duration a, Duration b) {
  if (a == kForever || b == kForever) return kForever;
  if (b > Duration::zero() && a > kForever - b) return kForever;
  return a + b;
}

// Names a session on one device. `serial` is never reused and orders sessions by their opening;
// `slot` is small, dense and reused, so that tables may be indexed by it.
struct SessionId {
  std::uint32_t slot = 0;
  std::uint64_t serial = 0;
  friend constexpr bool operator==(SessionId a, SessionId b) { return a.serial == b.serial; }
  friend constexpr auto operator<=>(SessionId a, SessionId b) { return a.serial <=> b.serial; }
};

// A part of the device's time, in parts per billion: integers, so that a decision is the same
// everywhere.
using Rate = std::int64_t;
inline constexpr Rate kWholeDevice = 1'000'000'000;

// What a service declares once; what it may declare is capped by configuration before it gets here.
struct Share {
  std::int32_t weight = 100;   // 1..10000
  Rate min = 0;                // 0..max: kept whenever the session has work
  Rate max = kWholeDevice;     // min..kWholeDevice: never passed, under any policy
  bool strict = false;         // needs min > 0: min stays free while it has no work
  std::int32_t priority = 0;   // -128..127, higher first
  Duration latency_target{0};  // of a job, from Submit; zero: none
  friend bool operator==(const Share&, const Share&) = default;
};

}  // namespace gpusched
