// Every seed that ever found something, again: regressions.txt.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "sim/swarm.h"

namespace gpusched::sim {
namespace {

TEST(RegressionsTest, SeedsThatFoundSomethingStaySilent) {
  std::ifstream file(GPUSCHED_REGRESSIONS);
  ASSERT_TRUE(file.is_open()) << GPUSCHED_REGRESSIONS;
  std::string line;
  int seeds = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::uint64_t seed = 0;
    if (!(words >> seed)) continue;
    ++seeds;
    const SwarmOutcome outcome = RunSeed(seed);
    EXPECT_TRUE(outcome.silent()) << line << "\n"
                                  << (outcome.silent() ? "" : outcome.violations.front().Text());
  }
  EXPECT_GT(seeds, 0);
}

}  // namespace
}  // namespace gpusched::sim
