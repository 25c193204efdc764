// Shares of the mixes that are known to be bad, and of policies that only look fair.
#include "sim/share_mixes.h"

#include <gtest/gtest.h>

#include <string>

#include "catalog.h"
#include "sim/unfair_policies.h"

namespace gpusched::sim {
namespace {

constexpr double kPoint = 0.01;

core::PolicySpec Spec() {
  return {.kind = "weighted_share", .parameters = "", .generation = 1, .source = "test"};
}
std::unique_ptr<Policy> WeightedShare() {
  return BuildPolicy("weighted_share", std::string_view()).policy;
}

TEST(ShareMixesTest, BadMixesStayWithinAPointOfASecondAndThreeOfATenth) {
  for (const Mix& mix : BadMixes()) {
    const ShareError error = Measure(mix, WeightedShare(), Spec(), true);
    EXPECT_LE(error.over_second, kPoint) << mix.name;
    EXPECT_LE(error.over_tenth, 3 * kPoint) << mix.name;
    for (const Violation& violation : error.violations) {
      ADD_FAILURE() << mix.name << ": " << violation.Text();
    }
  }
}

TEST(ShareMixesTest, LeastVirtualTimeAndPlainRoundRobinDoNot) {
  const Mix mix = BadMixes().front();
  EXPECT_GT(Measure(mix, std::make_unique<LeastVirtualTime>(), Spec(), true).over_tenth,
            3 * kPoint);
  EXPECT_GT(Measure(mix, std::make_unique<WeightedRoundRobin>(), Spec(), true).over_tenth,
            3 * kPoint);
}

}  // namespace
}  // namespace gpusched::sim
