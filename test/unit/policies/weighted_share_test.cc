// Stories of weighted shares; expected values by hand.
#include "weighted_share.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>

#include "stage.h"

namespace gpusched::testing {
namespace {

constexpr Duration kSlice = milliseconds(1);

Stage WeightedStage(Duration window = milliseconds(100)) {
  return Stage(std::make_unique<WeightedShare>(kSlice, window));
}

// Runs on and holds every session's lag against the bound of the paper: one slice either way.
void ExpectLagsWithin(Stage& stage, const std::vector<SessionId>& all, Duration bound, int slices) {
  for (int i = 0; i < slices; ++i) {
    stage.Step();
    for (const SessionId id : all) {
      ASSERT_LE(stage.Lag(id), bound) << "session " << id.serial << " slice " << i;
      ASSERT_GE(stage.Lag(id), -bound) << "session " << id.serial << " slice " << i;
    }
  }
}

TEST(WeightedShareTest, LagsStayWithinOneSliceFromTheFirst) {
  Stage stage = WeightedStage();
  const std::vector<SessionId> all = {stage.Add(10), stage.Add(20), stage.Add(70)};
  ExpectLagsWithin(stage, all, kSlice + microseconds(1), 3'000);
}

TEST(WeightedShareTest, OneHeavyBesideManyLightStaysWithinOneSlice) {
  Stage stage = WeightedStage();
  std::vector<SessionId> all = {stage.Add(99)};
  for (int i = 0; i < 63; ++i) all.push_back(stage.Add(1));
  ExpectLagsWithin(stage, all, kSlice + microseconds(1), 5'000);
}

TEST(WeightedShareTest, UncuttableCommandsWidenTheBoundToTheLongest) {
  Stage stage = WeightedStage();
  const std::vector<SessionId> all = {stage.Add(30, milliseconds(7)), stage.Add(70),
                                      stage.Add(15, microseconds(450))};
  ExpectLagsWithin(stage, all, milliseconds(7) + microseconds(1), 5'000);
}

TEST(WeightedShareTest, ManyLightOnesWithLongCommandsDoNotComeBeforeAHeavyOne) {
  Stage stage = WeightedStage();
  std::vector<SessionId> all = {stage.Add(7'000)};
  for (int i = 0; i < 11; ++i) all.push_back(stage.Add(80, milliseconds(8)));
  ExpectLagsWithin(stage, all, milliseconds(8) + microseconds(1), 5'000);
}

TEST(WeightedShareTest, EveryWindowIsWithinTheBoundOfTheHeader) {
  Stage stage = WeightedStage();
  const SessionId a = stage.Add(70);
  stage.Add(30);
  std::deque<std::pair<Time, Duration>> history;  // (t, got by a then)
  for (int i = 0; i < 5'000; ++i) {
    history.emplace_back(stage.now(), stage.Got(a));
    stage.Step();
    while (stage.now() - history.front().first > seconds(1)) history.pop_front();
    for (const auto& [begin, got] : {history.front(), history[history.size() / 2]}) {
      const Duration asked = (stage.now() - begin) * 7 / 10;
      const Duration off = stage.Got(a) - got - asked;
      ASSERT_LE(off, WeightedShare::FurthestOff(kSlice));
      ASSERT_GE(off, -WeightedShare::FurthestOff(kSlice));
    }
  }
}

TEST(WeightedShareTest, AMinIsKeptBesideAnyWeights) {
  Stage stage = WeightedStage();
  const SessionId held = stage.AddClamped(kWholeDevice / 2);
  const SessionId a = stage.Add(10'000), b = stage.Add(1);
  ExpectLagsWithin(stage, {held, a, b}, kSlice + microseconds(1), 3'000);
  EXPECT_NEAR(static_cast<double>(stage.Got(held).count()) /
                  static_cast<double>((stage.now() - Time(seconds(1))).count()),
              0.5, 0.001);
}

TEST(WeightedShareTest, SessionsMayComeAndGoAtAnyTime) {
  Stage stage = WeightedStage();
  std::vector<SessionId> all;
  for (int i = 0; i < 20; ++i) all.push_back(stage.Add(1 + i * i));
  std::vector<bool> awake(all.size(), true);
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t who = random() % all.size();
    if (who != 0 && random() % 3 == 0) {  // the first one always stays
      awake[who] ? stage.Sleep(all[who]) : stage.Wake(all[who]);
      awake[who] = !awake[who];
    }
    const SessionId ran = stage.Step();
    ASSERT_TRUE(awake[ran.slot]);
  }
  EXPECT_LT(stage.longest_wait(), stage.policy().LongestWait(stage.View(all[0])));
}

TEST(WeightedShareTest, AClaimFromBeforeDoesNotShutTheOthersOut) {
  Stage stage = WeightedStage();
  const SessionId claims = stage.Add(1), a = stage.Add(10);
  stage.Sleep(claims);
  stage.GiveLag(claims, seconds(5));
  stage.RunFor(milliseconds(100));
  stage.Wake(claims);
  const Duration before = stage.Got(a);
  stage.RunFor(seconds(5));
  EXPECT_GT(stage.Got(a) - before, milliseconds(200));
  EXPECT_LT(stage.longest_wait(), stage.policy().LongestWait(stage.View(a)));
}

TEST(WeightedShareTest, SlicesAreShortEnoughForTheWindow) {
  Stage stage = WeightedStage(milliseconds(20));
  stage.Add();
  EXPECT_EQ(stage.Ask().length, microseconds(300));  // 1.5 % of the window
}

TEST(WeightedShareTest, ASliceGoesOnWhileItsSessionIsOwedTime) {
  Stage stage = WeightedStage();
  const SessionId a = stage.Add(), b = stage.Add(100);
  stage.Sleep(a);
  stage.GiveLag(a, milliseconds(1));
  stage.Wake(a);
  const CurrentSlice slice{.session = a, .granted = kSlice, .used = kSlice / 2};
  EXPECT_EQ(stage.Ask(slice).kind, Decision::Kind::kKeep);
  stage.Sleep(a);
  EXPECT_EQ(stage.Ask(slice).session, b);
}

TEST(WeightedShareTest, WhoIsOwedTimeNeedNotWaitForASliceThatHasHadItsDue) {
  Stage stage = WeightedStage();
  const SessionId a = stage.Add(), b = stage.Add(100);
  const CurrentSlice slice{.session = a, .granted = kSlice, .used = kSlice / 2};
  EXPECT_EQ(stage.Ask(slice).session, b);
}

TEST(WeightedShareTest, AskingTwiceChangesNothing) {
  Stage stage = WeightedStage();
  for (int i = 0; i < 5; ++i) stage.Add(1 + 7 * i);
  for (int i = 0; i < 200; ++i) {
    const SessionId once = stage.Ask().session, twice = stage.Ask().session;
    EXPECT_EQ(once, twice);
    EXPECT_EQ(stage.Step(), once);
  }
}

}  // namespace
}  // namespace gpusched::testing
