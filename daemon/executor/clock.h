// The daemon's only now(): the steady clock, read as the scheduler's Time; the wall clock for
// people.
#pragma once

#include <chrono>

#include "gpusched/policy/types.h"

namespace gpusched::executor {

inline Time Now() {
  return Time(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

// The wall clock, for people's eyes and gRPC's deadlines; nothing is decided by it.
inline std::chrono::system_clock::time_point WallClock() {
  return std::chrono::system_clock::now();
}

}  // namespace gpusched::executor
