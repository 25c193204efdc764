// Shares of the mixes that are known to be bad, and of policies that only look fair.
#include "sim/share_mixes.h"

#include <gtest/gtest.h>

#include <string>

#include "catalog.h"
#include "sim/unfair_policies.h"

namespace gpusched::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

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

MixSession Capped(std::int32_t weight, Rate max, Duration job) {
  MixSession session;
  session.job = job;
  session.share.weight = weight;
  session.share.max = max;
  return session;
}

void ExpectWithinTheBound(const Mix& mix) {
  const ShareError error = Measure(mix, WeightedShare(), Spec(), true);
  EXPECT_LE(error.of_bound(), 1);
  for (const Violation& violation : error.violations) ADD_FAILURE() << violation.Text();
}

// At its max it can never catch up: what its bucket loses, by estimates that were too long or while
// others had the device, stays lost.
TEST(ShareMixesTest, WhoStandsAtItsMaxIsNotLeftBehind) {
  Mix mix{.name = "a story",
          .sessions = {Capped(7'817, 977'000'000, microseconds(237)),
                       Capped(97, 327'000'000, microseconds(410)),
                       Capped(9'276, 318'000'000, microseconds(897)),
                       Capped(5'592, 593'000'000, microseconds(783)),
                       Capped(28, 159'000'000, microseconds(2'356))}};
  mix.sessions[1].joins = milliseconds(364);
  mix.sessions[2].joins = milliseconds(174);
  mix.sessions[3].joins = milliseconds(134);
  mix.sessions[4].works = milliseconds(24);
  ExpectWithinTheBound(mix);
}

// What all of them save up together beside a strict session that rests is beyond what they ask for.
TEST(ShareMixesTest, NobodyRunsFarAheadBesideAStrictSessionThatRests) {
  Mix mix{.name = "a story",
          .sessions = {Capped(13, kWholeDevice, microseconds(1'313)),
                       Capped(2'085, 530'000'000, microseconds(280)),
                       Capped(35, kWholeDevice, microseconds(808)),
                       Capped(6'883, 616'000'000, microseconds(263)),
                       Capped(5'937, 602'000'000, microseconds(3'101))}};
  mix.sessions[3].share.min = 24'000'000;
  mix.sessions[3].share.strict = true;
  mix.sessions[3].joins = milliseconds(52);
  mix.sessions[3].works = milliseconds(95);
  ExpectWithinTheBound(mix);
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
