// Draws a run: who had the device when, and how long jobs took.
#pragma once

#include <string>
#include <vector>

#include "sim/run.h"
#include "sim/simulation.h"

namespace gpusched::sim {

// Slices of the first stretch of time in which all sessions were served, one lane each; below, the
// distribution of latencies, one line each.
class Picture : public Observer {
 public:
  explicit Picture(std::vector<std::string> names) : names_(std::move(names)) {}
  void OnAction(Time, const core::Action&) override;
  std::string Svg(const RunFigures&) const;

 private:
  struct Slice {
    std::size_t session = 0;  // by serial - 1
    Time started{}, ended{};
    bool rescue = false;
  };
  std::string Lanes(Time from, Time to, double top) const;
  std::string Latencies(const RunFigures&, double top) const;

  std::vector<std::string> names_;
  std::vector<Slice> slices_;
};

}  // namespace gpusched::sim
