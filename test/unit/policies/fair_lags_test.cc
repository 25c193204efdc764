// Which lags count, and the waiting times that follow from what was seen.
#include "fair_lags.h"

#include <gtest/gtest.h>

namespace gpusched {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kSlice = milliseconds(1);

// One free session of weight 1; its lag is as given.
SessionView Alone(Duration lag) {
  SessionView view;
  view.account.band = RateBand::kFree;
  view.account.fluid_weight = 1;
  view.account.rate = kWholeDevice;
  view.account.lag = lag;
  view.account.zero_lag = -(Wide{lag.count()} << kFluidBits);  // the clock shows zero
  return view;
}

FluidClock ClockOf(std::int64_t weight) {
  FluidClock clock;
  clock.free_rate = kWholeDevice;
  clock.free_weight = weight;
  clock.runnable_rate = kWholeDevice;
  return clock;
}

class FairLagsTest : public ::testing::Test {
 protected:
  FairLagsTest() { lags_.Add(0); }
  // What is left of the lag with which a session enters.
  Duration Counts(Duration lag) {
    const SessionView view = Alone(lag);
    lags_.Enter(view.id);
    const Account counted = lags_.Counted(view);
    lags_.Leave(view.id);
    lags_.Add(0);  // the next is another session
    return LagAt(FluidClock{}, counted);
  }
  const FluidClock& Decide(const FluidClock& clock) { return lags_.Counted(clock); }
  FairLags lags_{kSlice, FairLags::Strays::kByOne};
};

TEST_F(FairLagsTest, OfWhatIsBroughtAlongATenthOfASecondCounts) {
  for (const Duration lag :
       {Duration(0), Duration(milliseconds(99)), Duration(-milliseconds(99))}) {
    EXPECT_EQ(Counts(lag), lag);
  }
  EXPECT_EQ(Counts(seconds(3)), milliseconds(100));
  EXPECT_EQ(Counts(-seconds(3)), -milliseconds(100));
}

TEST_F(FairLagsTest, OfWhatComesLaterASliceOrTheLongestCommandCounts) {
  (void)lags_.Counted(Alone(Duration(0)));
  EXPECT_EQ(LagAt(FluidClock{}, lags_.Counted(Alone(milliseconds(40)))), milliseconds(1));
  // Forty less what does not count any more, and twelve that came since.
  lags_.Charged(milliseconds(12));
  EXPECT_EQ(LagAt(FluidClock{}, lags_.Counted(Alone(milliseconds(52)))), milliseconds(12));
}

TEST(FairLagsOfACrowdTest, EachOfTheCrowdMayHaveMadeALag) {
  FairLags lags(kSlice, FairLags::Strays::kByCrowd);
  for (std::uint32_t slot = 0; slot < 8; ++slot) {
    lags.Add(slot);
    lags.Enter({.slot = slot, .serial = slot + 1u});
  }
  (void)lags.Counted(Alone(Duration(0)));
  EXPECT_EQ(LagAt(FluidClock{}, lags.Counted(Alone(milliseconds(40)))), milliseconds(8));
}

TEST_F(FairLagsTest, WhatDoesNotCountStaysSo) {
  lags_.Enter(SessionId{});
  (void)lags_.Counted(Alone(seconds(3)));
  lags_.Leave(SessionId{});
  lags_.Enter(SessionId{});
  // It had all of its claim that counts, and is owed no more when it comes back.
  EXPECT_EQ(LagAt(FluidClock{}, lags_.Counted(Alone(seconds(3) - milliseconds(100)))), Duration(0));
}

TEST_F(FairLagsTest, ParIsThatOfWhatCounts) {
  lags_.Enter(SessionId{});
  (void)lags_.Counted(Alone(seconds(3)));
  // Two share the device, the other with no lag: par is at half of what there is, or counts.
  FluidClock clock = ClockOf(2);
  clock.free_par = -(Wide{Duration(milliseconds(1'500)).count()} << kFluidBits);
  EXPECT_NEAR(static_cast<double>(Decide(clock).free_par >> kFluidBits),
              static_cast<double>(-Duration(milliseconds(50)).count()), 2);
  lags_.Leave(SessionId{});
  EXPECT_TRUE(Decide(clock).free_par == clock.free_par);
}

TEST_F(FairLagsTest, TheDeclaredWaitGrowsWithTheCrowdAndTheLongestCommand) {
  lags_.Enter(SessionId{});
  (void)lags_.Counted(Alone(Duration(0)));
  (void)Decide(ClockOf(1));
  const Duration alone = lags_.LongestWait();
  lags_.Charged(milliseconds(50));
  const Duration beside_long = lags_.LongestWait();
  EXPECT_GE(beside_long, alone + milliseconds(100));
  (void)Decide(ClockOf(64));
  EXPECT_GE(lags_.LongestWait(), 50 * beside_long);
}

TEST_F(FairLagsTest, WhatWasDeclaredIsNotTakenBackWhenOthersLeave) {
  for (int i = 0; i < 64; ++i) lags_.Enter(SessionId{});
  (void)lags_.Counted(Alone(Duration(0)));
  (void)Decide(ClockOf(64));
  const Duration declared = lags_.LongestWait();
  for (int i = 0; i < 63; ++i) lags_.Leave(SessionId{});
  (void)Decide(ClockOf(1));
  EXPECT_EQ(lags_.LongestWait(), declared);
}

TEST_F(FairLagsTest, WithoutARateThereIsNoPromise) {
  (void)lags_.Counted(Alone(Duration(0)));
  FluidClock clock = ClockOf(1);
  clock.free_rate = 0;
  (void)Decide(clock);
  EXPECT_EQ(lags_.LongestWait(), kForever);
}

}  // namespace
}  // namespace gpusched
