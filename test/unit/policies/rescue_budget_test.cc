// The bucket that pays for rescues.
#include "rescue_budget.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpusched {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Time kStart{seconds(10)};

TEST(RescueBudgetTest, IsFullAgainWhenTheShareHasPaidForTheRescue) {
  RescueBudget budget(kWholeDevice / 20);
  EXPECT_LE(budget.full_at(), kStart);
  budget.Spend(kStart, milliseconds(1));
  EXPECT_EQ(budget.full_at(), kStart + milliseconds(20));
}

TEST(RescueBudgetTest, WhatTheDeviceReportsReplacesTheEstimate) {
  RescueBudget budget(kWholeDevice / 20);
  budget.Spend(kStart, milliseconds(1));
  budget.Settle({.session = {},
                 .started = kStart + milliseconds(1),
                 .charged = milliseconds(30),
                 .rescue = true});
  EXPECT_EQ(budget.full_at(), kStart + milliseconds(601));
}

TEST(RescueBudgetTest, TakesNoMoreThanItsShareAndOneSliceOfAnySecond) {
  RescueBudget budget(kWholeDevice / 10);
  std::vector<Time> rescues;
  for (Time now = kStart; now < kStart + seconds(5); now += milliseconds(1)) {
    if (budget.full_at() > now) continue;
    rescues.push_back(now);
    budget.Spend(now, milliseconds(2));
  }
  for (const Time begin : rescues) {
    int within = 0;
    for (const Time at : rescues) within += at >= begin && at < begin + seconds(1);
    EXPECT_LE(within * milliseconds(2), milliseconds(102));
  }
}

TEST(RescueBudgetTest, WithoutAShareThereIsNoRescue) {
  const RescueBudget budget(0);
  EXPECT_EQ(budget.full_at(), kNever);
  EXPECT_EQ(budget.Refill(milliseconds(1)), kForever);
}

}  // namespace
}  // namespace gpusched
