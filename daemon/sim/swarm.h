// Random histories: each seed draws which kinds of events and faults exist, then how often, and the
// checker watches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/rules.h"
#include "sim/simulation.h"

namespace gpusched::sim {

struct Mutant;

// What became of one seed.
struct SwarmOutcome {
  std::uint64_t seed = 0;
  std::uint64_t hash = 0, steps = 0, commands = 0;
  std::string drawn;  // what exists in this history, in words
  std::vector<Violation> violations;
  std::vector<std::string> records;  // the last ones before the first violation

  bool silent() const { return violations.empty(); }
  bool Broke(Rule) const;
};

// The same seed gives the same history. A mutant takes the place of the core or the policies.
SwarmOutcome RunSeed(std::uint64_t seed, const Mutant* mutant = nullptr);

struct SwarmOptions {
  std::uint64_t seed = 1;  // the first
  std::uint64_t seeds = 1;
  bool verbose = false;  // a line for every seed
};

// Prints each failure as seed, step, time and last records, and how to repeat it; a bar on long
// runs. The exit status: 0 if the checker stayed silent.
int RunSwarm(const SwarmOptions&);

}  // namespace gpusched::sim
