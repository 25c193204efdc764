// Percentiles by nearest rank, honest about values that are only known to be too small.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace gpusched::bench {

// How long something took; `at_least` if it was given up before it ended.
struct Measured {
  std::chrono::nanoseconds value{0};
  bool at_least = false;
};

// The smallest value with at least `percent` of all at or below it (nearest rank); 0 of nothing.
// `at_least` if one given up earlier could have moved it up.
inline Measured Percentile(std::vector<Measured> values, double percent) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end(),
            [](const Measured& a, const Measured& b) { return a.value < b.value; });
  // 99 % of 200 is 198, not 199: the product may lie a rounding above the whole number.
  const double exact = percent / 100 * static_cast<double>(values.size()) - 1e-9;
  std::size_t rank = static_cast<std::size_t>(exact < 0 ? 0 : exact);
  if (rank >= values.size()) rank = values.size() - 1;
  const bool moved =
      std::any_of(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank) + 1,
                  [](const Measured& m) { return m.at_least; });
  return {.value = values[rank].value, .at_least = moved};
}

inline std::chrono::nanoseconds Percentile(const std::vector<std::chrono::nanoseconds>& values,
                                           double percent) {
  std::vector<Measured> measured;
  measured.reserve(values.size());
  for (std::chrono::nanoseconds value : values) measured.push_back({.value = value});
  return Percentile(std::move(measured), percent).value;
}

}  // namespace gpusched::bench
