// Stories of round robin by device time; expected values by hand.
#include "round_robin.h"

#include <gtest/gtest.h>

#include <memory>

#include "stage.h"

namespace gpusched::testing {
namespace {

constexpr Duration kSlice = milliseconds(1);

Stage RoundRobinStage() { return Stage(std::make_unique<RoundRobin>(kSlice)); }

Duration Apart(const Stage& stage, SessionId a, SessionId b) {
  const Duration apart = stage.Got(a) - stage.Got(b);
  return apart < Duration(0) ? -apart : apart;
}

TEST(RoundRobinTest, SessionsTakeTurnsInTheOrderTheyCame) {
  Stage stage = RoundRobinStage();
  const SessionId a = stage.Add(), b = stage.Add(), c = stage.Add();
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(stage.Step(), a);
    EXPECT_EQ(stage.Step(), b);
    EXPECT_EQ(stage.Step(), c);
  }
}

TEST(RoundRobinTest, TheFirstTurnIsOneSliceAndNoneIsShorterThanHalfOrLongerThanTwo) {
  Stage stage = RoundRobinStage();
  stage.Add();
  stage.Add(1, microseconds(7'300));
  stage.Add(1, microseconds(200));
  EXPECT_EQ(stage.Ask().length, kSlice);
  for (int i = 0; i < 1'000; ++i) {
    const Duration length = stage.Ask().length;
    EXPECT_GE(length, kSlice / 2);
    EXPECT_LE(length, kSlice * 2);
    stage.Step();
  }
}

TEST(RoundRobinTest, TimeIsEqualWhateverTheCommandsTake) {
  Stage stage = RoundRobinStage();
  const SessionId tiny = stage.Add(1, microseconds(200)), huge = stage.Add(1, milliseconds(20));
  for (int i = 0; i < 3'000; ++i) {
    stage.Step();
    EXPECT_LE(Apart(stage, tiny, huge), RoundRobin::FurthestApart(2, kSlice, milliseconds(20)));
  }
}

TEST(RoundRobinTest, ManySessionsWithCommandsOfAllLengthsStayWithinTheBound) {
  Stage stage = RoundRobinStage();
  std::vector<SessionId> all;
  for (int i = 0; i < 12; ++i) all.push_back(stage.Add(1, microseconds(150) * i * i));
  const Duration bound = RoundRobin::FurthestApart(12, kSlice, microseconds(150) * 121);
  for (int i = 0; i < 5'000; ++i) {
    stage.Step();
    for (const SessionId id : all) EXPECT_LE(Apart(stage, all[0], id), bound);
  }
  // Over a minute the bound is what it was, so the parts are equal.
  stage.RunFor(seconds(60));
  for (const SessionId id : all) EXPECT_LE(Apart(stage, all[0], id), bound);
}

TEST(RoundRobinTest, WhoeverOverranWaitsUntilTheOthersHaveCaughtUp) {
  Stage stage = RoundRobinStage();
  const SessionId huge = stage.Add(1, milliseconds(20)), other = stage.Add();
  EXPECT_EQ(stage.Step(), huge);
  // 20 ms ahead: the other one runs until at most half a slice of debt is left.
  while (stage.Got(other) < milliseconds(19)) EXPECT_EQ(stage.Step(), other);
}

TEST(RoundRobinTest, ASessionThatComesLateIsOwedNothingForTheTimeBefore) {
  Stage stage = RoundRobinStage();
  const SessionId a = stage.Add();
  stage.RunFor(seconds(2));
  const SessionId b = stage.Add();
  const Duration before = stage.Got(a);
  stage.RunFor(seconds(1));
  EXPECT_NEAR((stage.Got(a) - before) / milliseconds(1), 500, 4);
  EXPECT_NEAR(stage.Got(b) / milliseconds(1), 500, 4);
}

TEST(RoundRobinTest, AClaimFromBeforeDoesNotShutTheOthersOut) {
  Stage stage = RoundRobinStage();
  const SessionId claims = stage.Add(), a = stage.Add(), b = stage.Add();
  stage.Sleep(claims);
  stage.GiveLag(claims, seconds(5));
  stage.RunFor(milliseconds(100));
  stage.Wake(claims);
  const Duration before = stage.Got(a) + stage.Got(b);
  stage.RunFor(seconds(1));
  // Its third, and of the five seconds two thirds of what the slices of three make.
  EXPECT_NEAR(stage.Got(claims) / milliseconds(1), 336, 3);
  EXPECT_NEAR((stage.Got(a) + stage.Got(b) - before) / milliseconds(1), 664, 4);
  EXPECT_LT(stage.longest_wait(), stage.policy().LongestWait(stage.View(a)));
}

TEST(RoundRobinTest, AClampedSessionGetsItsRateAndTheOthersShareTheRest) {
  Stage stage = RoundRobinStage();
  const SessionId capped = stage.AddClamped(kWholeDevice / 10), a = stage.Add(), b = stage.Add();
  stage.RunFor(seconds(2));
  EXPECT_NEAR(stage.Got(capped) / milliseconds(1), 200, 5);
  EXPECT_NEAR(stage.Got(a) / milliseconds(1), 900, 5);
  EXPECT_NEAR(stage.Got(b) / milliseconds(1), 900, 5);
}

TEST(RoundRobinTest, ATurnGoesOnUntilItsBudgetIsUsed) {
  Stage stage = RoundRobinStage();
  const SessionId a = stage.Add(), b = stage.Add();
  CurrentSlice slice{.session = b, .granted = kSlice, .used = kSlice / 2};
  EXPECT_EQ(stage.Ask(slice).kind, Decision::Kind::kKeep);
  slice.used = kSlice;
  EXPECT_EQ(stage.Ask(slice).session, a);
  stage.Sleep(b);
  slice.used = Duration(0);
  EXPECT_EQ(stage.Ask(slice).session, a);
}

TEST(RoundRobinTest, AskingTwiceChangesNothing) {
  Stage stage = RoundRobinStage();
  for (int i = 0; i < 5; ++i) stage.Add(1, microseconds(900) * i);
  for (int i = 0; i < 200; ++i) {
    const Decision once = stage.Ask(), twice = stage.Ask();
    EXPECT_EQ(once.session, twice.session);
    EXPECT_EQ(once.length, twice.length);
    EXPECT_EQ(stage.Step(), once.session);
  }
}

TEST(RoundRobinTest, WithNobodyThereItIsIdle) {
  Stage stage = RoundRobinStage();
  EXPECT_EQ(stage.Ask().kind, Decision::Kind::kIdle);
  const SessionId a = stage.Add();
  stage.Sleep(a);
  EXPECT_EQ(stage.Ask().kind, Decision::Kind::kIdle);
}

}  // namespace
}  // namespace gpusched::testing
