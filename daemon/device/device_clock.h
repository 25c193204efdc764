// The executor's clock as a device's own threads read it: the only now() among the devices.
//
// It is steady_clock (CLOCK_MONOTONIC), so what a device reports and what the executor reads are
// times on one line. Whoever is called by the executor uses the time it hands in instead.
#pragma once

#include <chrono>

#include "gpusched/policy/types.h"

namespace gpusched::device {

inline Time DeviceNow() {
  return Time(
      std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace gpusched::device
