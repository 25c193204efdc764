// Estimates follow a change at once and do not chase noise.
#include "core/estimate.h"

#include <gtest/gtest.h>

namespace gpusched::core {
namespace {

using std::chrono::microseconds;

TEST(EstimatesTest, OneMeasurementIsEnoughToExpect) {
  Estimates estimates(16, microseconds(50));
  const std::uint32_t i = estimates.IndexOf(1);
  EXPECT_FALSE(estimates.Known(i));
  estimates.Measured(i, 10, microseconds(100));
  EXPECT_TRUE(estimates.Known(i));
  EXPECT_EQ(estimates.Expect(i, 50), microseconds(500));
}

TEST(EstimatesTest, AChangeByAnyFactorIsKnownAfterOneCommand) {
  for (const std::int64_t factor : {100, 10, 3}) {
    Estimates estimates(16, microseconds(50));
    const std::uint32_t i = estimates.IndexOf(1);
    for (int k = 0; k < 20; ++k) estimates.Measured(i, 10, microseconds(1'000));
    estimates.Measured(i, 10, microseconds(1'000 * factor));
    EXPECT_EQ(estimates.Expect(i, 10), microseconds(1'000 * factor));
    estimates.Measured(i, 10, microseconds(1'000));
    EXPECT_EQ(estimates.Expect(i, 10), microseconds(1'000));
  }
}

TEST(EstimatesTest, NoiseIsAveragedAndItsSpreadIsKept) {
  Estimates estimates(16, microseconds(50));
  const std::uint32_t i = estimates.IndexOf(1);
  for (int k = 0; k < 400; ++k) estimates.Measured(i, 1, microseconds(k % 2 == 0 ? 950 : 1'050));
  EXPECT_NEAR(estimates.Expect(i, 1).count(), 1'000'000, 30'000);
  // Mean absolute deviation about 57 us around a moving average: 5/4 of it.
  EXPECT_NEAR((estimates.ExpectAtMost(i, 1) - estimates.Expect(i, 1)).count(), 71'000, 15'000);
}

TEST(EstimatesTest, WhatFitsIsTheRoomOverExpectationPlusSpread) {
  Estimates estimates(16, microseconds(50));
  const std::uint32_t i = estimates.IndexOf(1);
  estimates.Measured(i, 1, microseconds(16));  // spread a sixteenth: 17 us at most
  EXPECT_EQ(estimates.UnitsWithin(i, microseconds(170)), 10u);
  EXPECT_EQ(estimates.UnitsWithin(i, microseconds(1)), 1u);
}

TEST(EstimatesTest, AShortRemainderTeachesNothingThatItsStartExplains) {
  Estimates estimates(16, microseconds(50));
  const std::uint32_t i = estimates.IndexOf(1);
  for (int k = 0; k < 20; ++k) estimates.Measured(i, 100, microseconds(1'000));
  estimates.Measured(i, 1, microseconds(58));  // 10 us of work and 48 of starting it
  EXPECT_EQ(estimates.Expect(i, 100), microseconds(1'000));
  estimates.Measured(i, 1, microseconds(150));  // 100 us at least: the kernel has changed
  EXPECT_EQ(estimates.Expect(i, 100), microseconds(10'000));
}

TEST(EstimatesTest, OneAccidentCondemnsNobody) {
  Estimates estimates(16, microseconds(50));
  const std::uint32_t i = estimates.IndexOf(1);
  for (int k = 0; k < 20; ++k) estimates.Measured(i, 100, microseconds(1'000));
  estimates.Measured(i, 100, microseconds(10'000));
  EXPECT_EQ(estimates.ExpectCalmly(i, 100), microseconds(1'000));
  estimates.Measured(i, 100, microseconds(10'000));
  EXPECT_EQ(estimates.ExpectCalmly(i, 100), microseconds(10'000));
}

TEST(EstimatesTest, KeysBeyondTheLimitShareTheLast) {
  Estimates estimates(2, microseconds(50));
  const std::uint32_t a = estimates.IndexOf(10), b = estimates.IndexOf(20);
  EXPECT_NE(a, b);
  EXPECT_EQ(estimates.IndexOf(30), b);
  EXPECT_EQ(estimates.IndexOf(10), a);
}

}  // namespace
}  // namespace gpusched::core
