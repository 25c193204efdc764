// The checker is silent about the real core and loud about every broken one.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "sim/mutants.h"
#include "sim/swarm.h"

namespace gpusched::sim {
namespace {

// Every mutant is caught within so many.
constexpr std::uint64_t kSeeds = 200;

std::string Story(const SwarmOutcome& outcome) {
  std::string story = "seed " + std::to_string(outcome.seed) + " (" + outcome.drawn + ")\n";
  for (const Violation& violation : outcome.violations) story += violation.Text() + "\n";
  return story;
}

// In a process of its own: a broken core may die of it, which is no catch.
bool IsCaughtBy(const Mutant& mutant, std::uint64_t seed) {
  constexpr int kCaught = 42;
  constexpr unsigned kSecondsToLive = 60;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSecondsToLive);
    ::_exit(RunSeed(seed, &mutant).Broke(mutant.rule) ? kCaught : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == kCaught;
}

class MutantTest : public ::testing::TestWithParam<Mutant> {};

TEST_P(MutantTest, IsCaughtByItsRule) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    if (IsCaughtBy(GetParam(), seed)) return;
  }
  ADD_FAILURE() << GetParam().name << " (" << GetParam().story << ") passed as a core that keeps "
                << NameOf(GetParam().rule);
}

std::string NameOfMutant(const ::testing::TestParamInfo<Mutant>& info) {
  return std::string(info.param.name);
}
INSTANTIATE_TEST_SUITE_P(All, MutantTest,
                         ::testing::ValuesIn(AllMutants().begin(), AllMutants().end()),
                         NameOfMutant);

TEST(CheckerTest, EveryRuleHasAMutant) {
  std::set<Rule> broken;
  for (const Mutant& mutant : AllMutants()) broken.insert(mutant.rule);
  for (std::size_t rule = 0; rule < kRules; ++rule) {
    EXPECT_TRUE(broken.contains(static_cast<Rule>(rule))) << kRuleNames[rule];
  }
}

TEST(SwarmTest, NothingTheRealCoreDoesBreaksARule) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SwarmOutcome outcome = RunSeed(seed);
    EXPECT_TRUE(outcome.silent()) << Story(outcome);
  }
}

TEST(SwarmTest, ASeedGivesTheSameHistoryTwice) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const SwarmOutcome once = RunSeed(seed), again = RunSeed(seed);
    EXPECT_EQ(once.hash, again.hash) << "seed " << seed;
    EXPECT_EQ(once.steps, again.steps) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gpusched::sim
