// Caps by hand arithmetic: a rate, a burst, nothing lost to rounding.
#include "core/cap.h"

#include <gtest/gtest.h>

namespace gpusched::core {
namespace {

using std::chrono::milliseconds;

constexpr Time At(Duration d) { return Time(d); }

TEST(CapTest, FillsAtItsRateAndHoldsNoMoreThanItsBurst) {
  Cap cap;
  cap.SetRate(At(milliseconds(0)), kWholeDevice / 4, milliseconds(2));
  cap.Fill(At(milliseconds(4)));
  cap.Take(milliseconds(3));  // 1 - 3
  EXPECT_TRUE(cap.Empty());
  EXPECT_NEAR((cap.FullAgain(Duration(1)) - At(milliseconds(12))).count(), 0, 8);
  cap.Fill(At(std::chrono::seconds(10)));
  cap.Take(milliseconds(2));
  EXPECT_TRUE(cap.Empty());
}

TEST(CapTest, ManySmallFillsLoseNothing) {
  Cap cap;
  cap.SetRate(At(Duration(0)), kWholeDevice / 3, milliseconds(100));
  for (int i = 1; i <= 300'000; ++i) cap.Fill(At(Duration(i)));
  cap.Take(Duration(99'998));  // 300,000 x 333,333,333 / 10^9 = 99,999.9999
  EXPECT_FALSE(cap.Empty());
  cap.Take(Duration(1));
  EXPECT_TRUE(cap.Empty());
}

TEST(CapTest, AChangeOfRateDoesNotRefill) {
  Cap cap;
  cap.SetRate(At(Duration(0)), kWholeDevice / 2, milliseconds(2));
  cap.Take(milliseconds(5));
  cap.SetRate(At(Duration(0)), kWholeDevice / 4, milliseconds(2));
  EXPECT_TRUE(cap.Empty());
}

TEST(CapTest, WhatIsInFlightWhenALimitIsSetHasBeenTaken) {
  Cap cap;
  cap.SetRate(At(Duration(0)), kWholeDevice, milliseconds(2));
  cap.Fill(At(milliseconds(10)));
  cap.Take(milliseconds(1));
  cap.Fill(At(milliseconds(11)));
  cap.Take(milliseconds(3));  // 2 - 3: more is under way than was saved
  cap.SetRate(At(milliseconds(11)), kWholeDevice / 2, milliseconds(2));
  EXPECT_TRUE(cap.Empty());
  EXPECT_EQ(cap.FullAgain(Duration(1)), At(milliseconds(13) + Duration(3)));
}

TEST(CapTest, ALongCommandNobodyExpectedCostsOnlyWhatDidNotComeInMeanwhile) {
  Cap cap;
  cap.SetRate(At(Duration(0)), kWholeDevice / 2, milliseconds(2));
  cap.Fill(At(milliseconds(100)));  // full
  cap.Take(Duration(0));            // a command of which nothing is known
  cap.Fill(At(milliseconds(106)));
  cap.TakeLate(milliseconds(6), milliseconds(6));  // 2 - 6 + 3
  EXPECT_EQ(cap.FullAgain(Duration(1)), At(milliseconds(108) + Duration(3)));
}

TEST(CapTest, WhatSpilledBeforeTheCommandStaysLost) {
  Cap cap;
  cap.SetRate(At(Duration(0)), kWholeDevice / 2, milliseconds(2));
  cap.Fill(At(milliseconds(100)));
  cap.Fill(At(milliseconds(110)));  // it waits behind another's command
  cap.Fill(At(milliseconds(111)));
  cap.TakeLate(milliseconds(3), milliseconds(1));  // 2 - 3 + 0.5
  EXPECT_EQ(cap.FullAgain(Duration(1)), At(milliseconds(112) + Duration(3)));
}

TEST(CapTest, WhoeverWaitsForAnothersCommandLosesNothingMeanwhile) {
  Cap cap;
  cap.SetRate(At(Duration(0)), kWholeDevice / 2, milliseconds(2));
  cap.Fill(At(milliseconds(100)));
  cap.Take(Duration(0));
  cap.Fill(At(milliseconds(110)));
  cap.WaitedFor(milliseconds(10));  // 2 + 5
  cap.Fill(At(milliseconds(120)));  // no room for more
  cap.Take(milliseconds(7));
  EXPECT_TRUE(cap.Empty());
  EXPECT_EQ(cap.FullAgain(Duration(1)), At(milliseconds(120) + Duration(3)));
}

TEST(CapTest, UnlimitedIsNeverEmpty) {
  Cap cap;
  cap.Take(milliseconds(5));
  EXPECT_FALSE(cap.Empty());
}

}  // namespace
}  // namespace gpusched::core
