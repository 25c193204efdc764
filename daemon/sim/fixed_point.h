// Logarithms, powers and the gamma function in integers: the same digits on every machine and with
// every compiler.
//
// Numbers are Fixed: multiples of 2^-32. Methods are the plain ones: a binary logarithm by repeated
// squaring, a power of two by the table of 2^(2^-i), the gamma function by Abramowitz and Stegun
// 6.1.36 (error below 3e-7).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpusched::sim {

__extension__ using Wide128 = __int128;
using Fixed = std::int64_t;
inline constexpr int kFixedBits = 32;
inline constexpr Fixed kOne = Fixed{1} << kFixedBits;
inline constexpr Fixed kLogE2 = 2'977'044'472;  // ln 2
inline constexpr Fixed kLog2E = 6'196'328'019;  // 1 / ln 2
inline constexpr Fixed kE = 11'674'931'555;     // e
inline constexpr Fixed kLargest = INT64_MAX;

constexpr Fixed Clamped(Wide128 x) {
  return x > kLargest ? kLargest : x < -kLargest ? -kLargest : static_cast<Fixed>(x);
}
constexpr Fixed Multiply(Fixed a, Fixed b) { return Clamped(Wide128{a} * b >> kFixedBits); }
constexpr Fixed Divide(Fixed a, Fixed b) { return Clamped((Wide128{a} << kFixedBits) / b); }

// Of x / 2^64; x > 0. Between -64 and just under 0.
constexpr Fixed Log2OfFraction(std::uint64_t x) {
  __extension__ using Product = unsigned __int128;
  const int zeros = std::countl_zero(x);
  std::uint64_t mantissa = x << zeros;  // x 2^-63: in [1, 2)
  Fixed fraction = 0;
  for (int bit = kFixedBits - 1; bit >= 0; --bit) {
    const Product square = Product{mantissa} * mantissa;  // x 2^-126: in [1, 4)
    if ((square >> 127) != 0) {
      fraction |= Fixed{1} << bit;
      mantissa = static_cast<std::uint64_t>(square >> 64);
    } else {
      mantissa = static_cast<std::uint64_t>(square >> 63);
    }
  }
  return fraction - Fixed{zeros + 1} * kOne;
}

// Of x > 0.
constexpr Fixed Log2(Fixed x) {
  return Log2OfFraction(static_cast<std::uint64_t>(x)) + Fixed{64 - kFixedBits} * kOne;
}

namespace fixed_internal {

constexpr std::uint64_t SquareRoot(unsigned __int128 x) {
  std::uint64_t root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const std::uint64_t larger = root | std::uint64_t{1} << bit;
    if (static_cast<unsigned __int128>(larger) * larger <= x) root = larger;
  }
  return root;
}

// 2^(2^-(i+1)) x 2^62.
constexpr std::array<std::uint64_t, kFixedBits> RootsOfTwo() {
  std::array<std::uint64_t, kFixedBits> roots{};
  std::uint64_t last = std::uint64_t{2} << 62;
  for (std::uint64_t& root : roots) {
    root = SquareRoot(static_cast<unsigned __int128>(last) << 62);
    last = root;
  }
  return roots;
}
inline constexpr auto kRootsOfTwo = RootsOfTwo();

}  // namespace fixed_internal

// 2^x; zero where that is too small, kLargest where it is too large.
constexpr Fixed Exp2(Fixed x) {
  const Fixed whole = x >> kFixedBits;
  if (whole >= 63 - kFixedBits) return kLargest;
  if (whole < -kFixedBits) return 0;
  std::uint64_t mantissa = std::uint64_t{1} << 62;
  for (int i = 0; i < kFixedBits; ++i) {
    if ((x >> (kFixedBits - 1 - i) & 1) == 0) continue;
    mantissa =
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(mantissa) *
                                       fixed_internal::kRootsOfTwo[static_cast<std::size_t>(i)] >>
                                   62);
  }
  return static_cast<Fixed>(mantissa >> (62 - kFixedBits - whole));
}

// x^y; x > 0.
constexpr Fixed Power(Fixed x, Fixed y) { return Exp2(Multiply(Log2(x), y)); }

// Of x in [1, 12].
constexpr Fixed Gamma(Fixed x) {
  // Coefficients b1..b8 of Gamma(1 + x) = 1 + sum b_i x^i, 0 <= x <= 1, in parts of 10^9.
  constexpr std::array<std::int64_t, 8> kCoefficients = {-577'191'652, 988'205'891,  -897'056'937,
                                                         918'206'857,  -756'704'078, 482'199'394,
                                                         -193'527'818, 35'868'343};
  Fixed factor = kOne;
  while (x >= 2 * kOne) {
    x -= kOne;
    factor = Multiply(factor, x);
  }
  const Fixed rest = x - kOne;
  Fixed sum = 0;
  for (std::size_t i = kCoefficients.size(); i-- > 0;) {
    sum =
        Multiply(sum + static_cast<Fixed>(Wide128{kCoefficients[i]} * kOne / 1'000'000'000), rest);
  }
  return Multiply(kOne + sum, factor);
}

// "12.5" -> 12.5 x scale, rounded towards zero; nothing if it is anything but digits and one point,
// or too large. A leading '-' is taken.
constexpr std::optional<std::int64_t> ParseDecimal(std::string_view text, std::int64_t scale) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  constexpr Wide128 kMost = Wide128{1} << 94;  // what is read keeps below it
  Wide128 number = 0, divisor = 1;
  bool digits = false, point = false;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    digits = true;
    if (point && divisor >= 1'000'000'000'000) continue;  // finer than any scale here
    number = number * 10 + (c - '0');
    if (point) divisor *= 10;
    if (number >= kMost) return std::nullopt;
  }
  if (!digits) return std::nullopt;
  const Wide128 whole = number / divisor, rest = number % divisor;
  if (whole > INT64_MAX / scale) return std::nullopt;
  const Wide128 value = whole * scale + rest * scale / divisor;
  if (value > INT64_MAX) return std::nullopt;
  return negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
}

}  // namespace gpusched::sim
