// The figures of the main job, for the demo that plays it and the promise that measures it.
#pragma once

#include <chrono>
#include <cstdint>

#include "support/arrivals.h"

namespace gpusched::bench {

inline constexpr double kMainRequestsPerSecond = 75;
inline constexpr std::chrono::milliseconds kMainRequestWork{8};
inline constexpr std::chrono::milliseconds kMainTarget{100};
inline constexpr std::uint64_t kMainSeed = 20240117;

// The requests of one turn: Poisson, 60 % of the device, the same every time.
inline Arrivals MainJobRequests(nanoseconds turn) {
  return Poisson(kMainRequestsPerSecond, kMainRequestWork, turn, kMainSeed);
}

}  // namespace gpusched::bench
