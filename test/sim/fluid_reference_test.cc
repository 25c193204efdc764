// The checker's fluid reference against arithmetic by hand.
#include "sim/fluid_reference.h"

#include <gtest/gtest.h>

#include <vector>

#include "sim/share_meter.h"

namespace gpusched::sim {
namespace {

constexpr Rate kPercent = kWholeDevice / 100;

FluidMember Member(std::int32_t weight, Rate min = 0, Rate max = kWholeDevice, bool has_work = true,
                   bool strict = false) {
  FluidMember member;
  member.share = {.weight = weight, .min = min, .max = max, .strict = strict};
  member.has_work = has_work;
  return member;
}

std::vector<double> Rates(ShareRule rule, std::vector<FluidMember> members) {
  std::vector<FluidMember*> pointers;
  for (FluidMember& member : members) pointers.push_back(&member);
  SetFluidRates(rule, pointers);
  std::vector<double> rates;
  for (const FluidMember& member : members) rates.push_back(member.rate);
  return rates;
}

void ExpectNear(const std::vector<double>& rates, const std::vector<double>& expected) {
  ASSERT_EQ(rates.size(), expected.size());
  for (std::size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(rates[i], expected[i], 1e-9) << i;
}

TEST(FluidReferenceTest, WeightsDivideTheDevice) {
  ExpectNear(Rates(ShareRule::kWeighted, {Member(10), Member(20), Member(70)}), {.1, .2, .7});
}

TEST(FluidReferenceTest, WhoHasNoWorkGetsNothing) {
  ExpectNear(
      Rates(ShareRule::kWeighted, {Member(10), Member(30), Member(60, 0, kWholeDevice, false)}),
      {.25, .75, 0});
}

TEST(FluidReferenceTest, AMinIsKeptAndTheOthersShareTheRest) {
  // 1 : 9 would give the first 10 %; it has 40 %, the second what is left.
  ExpectNear(Rates(ShareRule::kWeighted, {Member(10, 40 * kPercent), Member(90)}), {.4, .6});
}

TEST(FluidReferenceTest, AMaxIsNotPassedAndTheOthersShareTheRest) {
  ExpectNear(Rates(ShareRule::kWeighted, {Member(80, 0, 20 * kPercent), Member(10), Member(30)}),
             {.2, .2, .6});
}

TEST(FluidReferenceTest, WhereAllAreAtTheirMaxTheRestIsNobodys) {
  ExpectNear(
      Rates(ShareRule::kWeighted, {Member(1, 0, 30 * kPercent), Member(100, 0, 30 * kPercent)}),
      {.3, .3});
}

TEST(FluidReferenceTest, AStrictMinStaysFree) {
  ExpectNear(Rates(ShareRule::kWeighted,
                   {Member(50), Member(50), Member(1, 40 * kPercent, kWholeDevice, false, true)}),
             {.3, .3, 0});
}

TEST(FluidReferenceTest, EqualSharesKnowNoWeightsAndOnlyStrictMins) {
  ExpectNear(Rates(ShareRule::kEqual, {Member(1), Member(1'000), Member(5, 60 * kPercent),
                                       Member(5, 50 * kPercent, kWholeDevice, true, true)}),
             {.5 / 3, .5 / 3, .5 / 3, .5});
}

TEST(FluidReferenceTest, WithoutSharesNobodyAsks) {
  ExpectNear(Rates(ShareRule::kNone, {Member(1), Member(2)}), {0, 0});
}

TEST(ShareMeterTest, AskedIsTheIntegralOfTheRate) {
  const auto at = [](int ms) { return Time(std::chrono::milliseconds(ms)); };
  ShareMeter meter;
  meter.SetRule(at(0), ShareRule::kWeighted);
  meter.Open(at(0), 0, {.weight = 100});
  meter.Open(at(0), 1, {.weight = 300});
  meter.SetWork(at(0), 0, true);
  meter.SetWork(at(5), 1, true);
  // The device was charged for 2..8 ms: alone until 5, then a quarter.
  meter.Pass(at(2), at(8));
  EXPECT_NEAR(meter.Asked(0), 3.75e6, 1);
  EXPECT_NEAR(meter.Asked(1), 2.25e6, 1);
  // Who leaves owed something leaves it to the rest.
  meter.Close(at(8), 1);
  EXPECT_NEAR(meter.Asked(0), 6e6, 1);
}

}  // namespace
}  // namespace gpusched::sim
