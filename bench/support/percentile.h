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
// One given up counts as longer than all that ended, so what is shown is never better than the
// truth; where it is one of those, the least that the percentile can be is shown, as `at_least`.
inline Measured Percentile(std::vector<Measured> values, double percent) {
  if (values.empty()) return {};
  // 99 % of 200 is 198, not 199: the product may lie a rounding above the whole number.
  const double exact = percent / 100 * static_cast<double>(values.size()) - 1e-9;
  const std::size_t rank =
      std::min(static_cast<std::size_t>(exact < 0 ? 0 : exact), values.size() - 1);
  std::sort(values.begin(), values.end(), [](const Measured& a, const Measured& b) {
    return a.at_least != b.at_least ? b.at_least : a.value < b.value;
  });
  if (!values[rank].at_least) return values[rank];
  std::sort(values.begin(), values.end(),
            [](const Measured& a, const Measured& b) { return a.value < b.value; });
  return {.value = values[rank].value, .at_least = true};
}

inline std::chrono::nanoseconds Percentile(const std::vector<std::chrono::nanoseconds>& values,
                                           double percent) {
  std::vector<Measured> measured;
  measured.reserve(values.size());
  for (std::chrono::nanoseconds value : values) measured.push_back({.value = value});
  return Percentile(std::move(measured), percent).value;
}

}  // namespace gpusched::bench
