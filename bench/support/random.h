// A small seeded generator: the same draws on every machine, so that two runs see the same
// arrivals.
//
// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>

namespace gpusched::bench {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 0..bound-1; bound > 0. The bias is below bound / 2^64.
  std::uint64_t Below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{Next()} * bound) >> 64);
  }
  // In (0, 1]: never zero, so that its logarithm exists.
  double Fraction() { return static_cast<double>((Next() >> 11) + 1) * 0x1p-53; }
  // With this mean: the gaps of a Poisson process.
  std::chrono::nanoseconds Exponential(std::chrono::nanoseconds mean) {
    return std::chrono::nanoseconds(
        std::llround(-std::log(Fraction()) * static_cast<double>(mean.count())));
  }

 private:
  std::uint64_t state_;
};

}  // namespace gpusched::bench
