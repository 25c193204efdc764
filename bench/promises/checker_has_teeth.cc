// Broken cores and policies, each under the checker until its rule has caught it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>

#include "promises/table.h"
#include "sim/mutants.h"
#include "sim/swarm.h"

namespace gpusched::bench {
namespace {

constexpr std::uint64_t kSeeds = 200;

// In a process of its own: a broken core may die of it, which is no catch.
bool IsCaughtBy(const sim::Mutant& mutant, std::uint64_t seed) {
  constexpr int kCaught = 42;
  constexpr unsigned kSecondsToLive = 30;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSecondsToLive);
    ::_exit(sim::RunSeed(seed, &mutant).Broke(mutant.rule) ? kCaught : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == kCaught;
}

// Zero: not within kSeeds.
std::uint64_t FirstSeedThatCatches(const sim::Mutant& mutant) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (IsCaughtBy(mutant, seed)) return seed;
  }
  return 0;
}

}  // namespace

Result<Measurement> MeasureCheckerHasTeeth(Length) {
  Measurement measurement;
  std::set<sim::Rule> tried;
  std::uint64_t latest = 0;
  double missed = 0;
  for (const sim::Mutant& mutant : sim::AllMutants()) {
    const std::uint64_t seed = FirstSeedThatCatches(mutant);
    tried.insert(mutant.rule);
    latest = std::max(latest, seed);
    missed += seed == 0;
    measurement.remark += std::string(sim::NameOf(mutant.rule)) + ": " + std::string(mutant.name) +
                          (seed == 0 ? " is missed" : ", seed " + std::to_string(seed)) + "\n";
  }
  const auto untried = static_cast<double>(sim::kRules - tried.size());
  measurement.figures = {
      AtMost("rules without a mutant", untried, "", 0),
      AtMost("mutants that pass for sound", missed, "", 0),
      AtMost("seeds until the last is caught", static_cast<double>(latest), "", kSeeds)};
  return measurement;
}

}  // namespace gpusched::bench
