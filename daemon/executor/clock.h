// The daemon's only now(): the steady clock, read as the scheduler's Time.
#pragma once

#include <chrono>

#include "gpusched/policy/types.h"

namespace gpusched::executor {

inline Time Now() {
  return Time(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace gpusched::executor
