// Percentiles by nearest rank, and what is known only to be too small.
#include "support/percentile.h"

#include <gtest/gtest.h>

namespace gpusched::bench {
namespace {

using std::chrono::milliseconds;

std::vector<std::chrono::nanoseconds> UpTo(int count) {
  std::vector<std::chrono::nanoseconds> values;
  for (int i = count; i >= 1; --i) values.push_back(milliseconds(i));
  return values;
}

TEST(Percentile, IsTheNearestRank) {
  EXPECT_EQ(Percentile(UpTo(100), 50), milliseconds(50));
  EXPECT_EQ(Percentile(UpTo(100), 99), milliseconds(99));
  EXPECT_EQ(Percentile(UpTo(200), 99), milliseconds(198));
  EXPECT_EQ(Percentile(UpTo(5), 50), milliseconds(3));
  EXPECT_EQ(Percentile(UpTo(5), 99), milliseconds(5));
  EXPECT_EQ(Percentile(UpTo(1), 99), milliseconds(1));
  EXPECT_EQ(Percentile(UpTo(7), 100), milliseconds(7));
}

TEST(Percentile, OfNothingIsZero) { EXPECT_EQ(Percentile(UpTo(0), 99), milliseconds(0)); }

TEST(Percentile, OneGivenUpIsLongerThanAllThatEnded) {
  const std::vector<Measured> values = {
      {milliseconds(1)}, {milliseconds(2), true}, {milliseconds(3)}, {milliseconds(4)}};
  EXPECT_EQ(Percentile(values, 50).value, milliseconds(3));
  EXPECT_FALSE(Percentile(values, 75).at_least);
  EXPECT_EQ(Percentile(values, 75).value, milliseconds(4));
}

TEST(Percentile, WhatIsOnlyKnownToBeTooSmallIsSaidToBe) {
  const std::vector<Measured> values = {
      {milliseconds(1)}, {milliseconds(2), true}, {milliseconds(3)}, {milliseconds(4)}};
  EXPECT_TRUE(Percentile(values, 99).at_least);
  EXPECT_EQ(Percentile(values, 99).value, milliseconds(4));
}

}  // namespace
}  // namespace gpusched::bench
