// What the victim of client_killed does, for both sides to know.
#pragma once

#include <chrono>
#include <cstdint>

namespace gpusched::bench {

inline constexpr std::chrono::milliseconds kVictimLaunch{50};
// Large enough that writing it takes milliseconds.
inline constexpr std::uint64_t kVictimMemory = 16 << 20;

inline constexpr int kVictimNice = 10;

}  // namespace gpusched::bench
