// One line for each thing measured, which run.sh gathers into a table and JSON.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace gpusched::gpu {

inline void Print(const std::string& name, double value, const char* unit) {
  std::printf("figure\t%s\t%.6g\t%s\n", name.c_str(), value, unit);
  std::fflush(stdout);
}
// What could not be measured here, and why.
inline void PrintNotRun(const std::string& name, const std::string& why) {
  std::printf("not run\t%s\t%s\t\n", name.c_str(), why.c_str());
  std::fflush(stdout);
}

// The value that `part` of the values do not pass; not a number where there are none.
inline double Quantile(std::vector<double> values, double part) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto at = std::min(values.size() - 1,
                           static_cast<std::size_t>(part * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

using Clock = std::chrono::steady_clock;
inline double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

}  // namespace gpusched::gpu
