// What a promise is to the harness: a name, the sentence it keeps, and how its figures are
// measured.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/status.h"

namespace gpusched::bench {

// One measured figure beside its bar.
struct Figure {
  enum class Side { kAtMost, kAtLeast };

  std::string what;  // "70/30, worst window"
  double value = 0;
  std::string unit;  // "points"; "" for a plain count
  Side side = Side::kAtMost;
  double bar = 0;

  bool holds() const { return side == Side::kAtMost ? value <= bar : value >= bar; }
};

inline Figure AtMost(std::string what, double value, std::string unit, double bar) {
  return {.what = std::move(what),
          .value = value,
          .unit = std::move(unit),
          .side = Figure::Side::kAtMost,
          .bar = bar};
}
inline Figure AtLeast(std::string what, double value, std::string unit, double bar) {
  return {.what = std::move(what),
          .value = value,
          .unit = std::move(unit),
          .side = Figure::Side::kAtLeast,
          .bar = bar};
}

struct Measurement {
  std::vector<Figure> figures;
  // Why nothing could be measured on this machine: what it lacks, never what went wrong.
  std::string not_run;
  // For people, below the figures: a table, absolute values, what the input was.
  std::string remark;
};

enum class Length {
  kShort,  // under a minute
  kFull,   // as long as the promise says
};

struct Promise {
  std::string_view name;
  std::string_view sentence;
  // A Status is something that went wrong while measuring: the promise was not kept.
  Result<Measurement> (*measure)(Length) = nullptr;
};

// Latency bars of 1 ms and more that do not name it allow so much for the host's own wake-ups.
inline constexpr double kHostWakeUpsMs = 0.3;

}  // namespace gpusched::bench
