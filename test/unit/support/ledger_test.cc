// The ledger's windows, by hand.
#include "support/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusched::bench {
namespace {

using std::chrono::milliseconds;

// Session 1 has [0, 10) and [20, 30), session 2 has [10, 20) and was charged half of it.
Ledger ThreeSlices() {
  Ledger ledger;
  ledger.Add({1, milliseconds(0), milliseconds(10), milliseconds(10)});
  ledger.Add({2, milliseconds(10), milliseconds(20), milliseconds(5)});
  ledger.Add({1, milliseconds(20), milliseconds(30), milliseconds(10)});
  return ledger;
}

TEST(Ledger, WholeSlicesCountWhole) {
  EXPECT_EQ(ThreeSlices().Charged(1, milliseconds(0), milliseconds(30)), milliseconds(20));
  EXPECT_EQ(ThreeSlices().Charged(milliseconds(0), milliseconds(30)), milliseconds(25));
  EXPECT_DOUBLE_EQ(ThreeSlices().Share(1, milliseconds(0), milliseconds(40)), 0.5);
}

TEST(Ledger, AWindowMayBeginAndEndInsideASlice) {
  EXPECT_EQ(ThreeSlices().Charged(1, milliseconds(5), milliseconds(25)), milliseconds(10));
  EXPECT_EQ(ThreeSlices().Charged(2, milliseconds(12), milliseconds(16)), milliseconds(2));
}

TEST(Ledger, NothingOutsideAndNothingOfStrangers) {
  EXPECT_EQ(ThreeSlices().Charged(1, milliseconds(10), milliseconds(20)), milliseconds(0));
  EXPECT_EQ(ThreeSlices().Charged(3, milliseconds(0), milliseconds(30)), milliseconds(0));
  EXPECT_EQ(ThreeSlices().Charged(1, milliseconds(30), milliseconds(90)), milliseconds(0));
}

TEST(Ledger, WindowsMayBeginAtEverySlice) {
  EXPECT_THAT(ThreeSlices().Starts(milliseconds(5), milliseconds(20)),
              testing::ElementsAre(milliseconds(10), milliseconds(20)));
}

}  // namespace
}  // namespace gpusched::bench
