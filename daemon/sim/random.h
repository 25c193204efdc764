// The simulator's own random numbers: integers only, so that a seed means the same everywhere.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpusched/policy/types.h"
#include "sim/fixed_point.h"

namespace gpusched::sim {

// SplitMix64 (Steele, Lea and Flood 2014).
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
  // A generator of its own for a part, so that another part's draws do not move it.
  Random Fork() { return Random(Next()); }

  // 0..bound-1; bound > 0. The bias is below bound / 2^64.
  std::uint64_t Below(std::uint64_t bound) {
    __extension__ using Product = unsigned __int128;
    return static_cast<std::uint64_t>((Product{Next()} * bound) >> 64);
  }
  // least..greatest.
  std::int64_t Between(std::int64_t least, std::int64_t greatest) {
    return least +
           static_cast<std::int64_t>(Below(static_cast<std::uint64_t>(greatest - least) + 1));
  }
  Duration Between(Duration least, Duration greatest) {
    return Duration(Between(least.count(), greatest.count()));
  }
  // True once in `times`, on average.
  bool Once(std::uint64_t times) { return Below(times) == 0; }

  // Mean 1 each; a heavy tail ends at what Fixed holds.
  Fixed Exponential() { return Multiply(-Log2OfFraction(Next() | 1), kLogE2); }
  // By inversion. shape in [0.1, 1000].
  Fixed Weibull(Fixed shape) {
    const Fixed power = Divide(kOne, shape);
    const Fixed draw = Exponential();
    if (draw == 0) return 0;
    return Divide(Power(draw, power), Gamma(kOne + power));
  }
  // Whole shapes as a sum of exponentials, the rest by Ahrens and Dieter (1974), algorithm GS.
  // shape in [0.01, 1000].
  Fixed GammaShaped(Fixed shape) {
    Fixed sum = 0;
    for (Fixed whole = shape; whole >= kOne; whole -= kOne) sum += Exponential();
    const Fixed rest = shape & (kOne - 1);
    if (rest > kLeastShape) sum += SmallGamma(rest);
    return Divide(sum, shape);
  }
  // Standard deviation 1, mean 0, within three: the sum of three uniform numbers.
  Fixed Bell() {
    Fixed sum = 0;
    for (int i = 0; i < 3; ++i) sum += static_cast<Fixed>(Next() >> (64 - kFixedBits));
    return 2 * sum - 3 * kOne;
  }

  Duration Scaled(Duration mean, Fixed draw) { return Duration(Multiply(mean.count(), draw)); }

 private:
  // A part of a shape below this adds nothing that can be told.
  static constexpr Fixed kLeastShape = kOne / 1'000;

  Fixed SmallGamma(Fixed shape) {
    const Fixed inverse = Divide(kOne, shape);
    const Fixed border = Divide(shape + kE, kE);
    for (;;) {
      const Fixed p = Multiply(border, static_cast<Fixed>(Next() >> (64 - kFixedBits)) + 1);
      const Fixed refusal = -Log2OfFraction(Next() | 1);  // -log2 of the second uniform number
      if (p <= kOne) {
        const Fixed x = Exp2(Multiply(Log2(p), inverse));
        if (refusal >= Multiply(x, kLog2E)) return x;
      } else {
        const Fixed inside = std::max<Fixed>(1, Divide(border - p, shape));
        const Fixed x = Multiply(-Log2(inside), kLogE2);
        if (x <= 0) continue;
        if (refusal >= Multiply(kOne - shape, Log2(x))) return x;
      }
    }
  }

  std::uint64_t state_;
};

}  // namespace gpusched::sim
