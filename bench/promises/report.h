// How measured promises are told: lines for people, JSON for machines.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "promises/promise.h"

namespace gpusched::bench {

enum class Verdict { kHolds, kFallsShort, kNotRun };

// A promise with what came of it.
struct Told {
  const Promise* promise = nullptr;
  Result<Measurement> measured;
  double seconds = 0;

  Verdict verdict() const;
};

// A line for each figure: name, figure, value, unit, bar, verdict, seconds.
void TellPeople(std::ostream& out, const Told& told);
void TellSummary(std::ostream& out, const std::vector<Told>& all);
// With the machine and the commit.
void TellMachines(std::ostream& out, const std::vector<Told>& all, Length length);

}  // namespace gpusched::bench
