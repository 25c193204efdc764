// Lists of arrivals keep their requests, their burstiness and their load.
#include "support/arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusched::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Arrivals, PoissonHasItsRateAndIsTheSameForEverySeed) {
  const Arrivals arrivals = Poisson(75, milliseconds(8), seconds(200), 1);
  // 15,000 on average with a deviation of 122: four of them on either side.
  EXPECT_NEAR(static_cast<double>(arrivals.size()), 15'000, 490);
  EXPECT_NEAR(LoadOf(arrivals), 0.6, 0.02);
  const Arrivals again = Poisson(75, milliseconds(8), seconds(200), 1);
  ASSERT_EQ(arrivals.size(), again.size());
  EXPECT_EQ(arrivals.back().at, again.back().at);
  EXPECT_NE(arrivals.front().at, Poisson(75, milliseconds(8), seconds(200), 2).front().at);
}

TEST(Arrivals, PoissonGapsVaryAsMuchAsTheirMean) {
  const Arrivals arrivals = Poisson(100, milliseconds(1), seconds(200), 3);
  double sum = 0, squares = 0;
  for (std::size_t i = 1; i < arrivals.size(); ++i) {
    const double gap = static_cast<double>((arrivals[i].at - arrivals[i - 1].at).count()) / 1e6;
    sum += gap;
    squares += gap * gap;
  }
  const double count = static_cast<double>(arrivals.size() - 1), mean = sum / count;
  EXPECT_NEAR(mean, 10, 0.4);
  EXPECT_NEAR(squares / count - mean * mean, 100, 10);
}

TEST(Arrivals, OneInEveryPeriodAtAPhaseOfItsOwn) {
  const Arrivals arrivals = EveryAtRandomPhase(milliseconds(20), milliseconds(2), seconds(1), 1);
  ASSERT_EQ(arrivals.size(), 50u);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    EXPECT_EQ(arrivals[i].at / milliseconds(20), static_cast<std::int64_t>(i));
  }
  EXPECT_NE(arrivals[0].at % milliseconds(20), arrivals[1].at % milliseconds(20));
}

// Four requests of 10 ms with gaps of 10, 30 and 20 ms: 40 ms of work in 4 mean gaps of 20 ms.
Arrivals FourRequests() {
  return {{milliseconds(0), milliseconds(10)},
          {milliseconds(10), milliseconds(10)},
          {milliseconds(40), milliseconds(10)},
          {milliseconds(60), milliseconds(10)}};
}

TEST(Arrivals, ScalingKeepsRequestsAndTheRatioOfTheirGaps) {
  EXPECT_DOUBLE_EQ(LoadOf(FourRequests()), 0.5);
  const Arrivals scaled = ScaledToLoad(FourRequests(), 1.0);
  ASSERT_EQ(scaled.size(), 4u);
  EXPECT_EQ(scaled[1].at, milliseconds(5));
  EXPECT_EQ(scaled[2].at, milliseconds(20));
  EXPECT_EQ(scaled[3].at, milliseconds(30));
  EXPECT_EQ(scaled[3].work, milliseconds(10));
}

TEST(Arrivals, AStretchIsCountedFromItsOwnStart) {
  const Arrivals part = Stretch(FourRequests(), milliseconds(10), milliseconds(50));
  ASSERT_EQ(part.size(), 2u);
  EXPECT_EQ(part[0].at, milliseconds(0));
  EXPECT_EQ(part[1].at, milliseconds(30));
}

TEST(Arrivals, AStretchOfLoadFillsItsLength) {
  const Arrivals long_list = Poisson(10, milliseconds(20), seconds(1'000), 5);
  const Arrivals part = StretchOfLoad(long_list, 100, seconds(10), 0.6);
  EXPECT_NEAR(LoadOf(part), 0.6, 0.03);
  EXPECT_EQ(part.front().at, milliseconds(0));
  EXPECT_LT(part.back().at, seconds(10));
  EXPECT_NEAR(static_cast<double>(part.size()), 300, 5);
}

TEST(Arrivals, EveryTurnMeetsTheSameRequests) {
  const Arrivals all = Repeated(FourRequests(), milliseconds(50), 2);
  ASSERT_EQ(all.size(), 6u);  // the fourth lies beyond the turn
  EXPECT_EQ(all[3].at, milliseconds(50));
  EXPECT_EQ(all[5].at, milliseconds(90));
}

TEST(Arrivals, FirstComeFirstServedByHand) {
  const Arrivals arrivals = {{milliseconds(0), milliseconds(30)},
                             {milliseconds(10), milliseconds(5)},
                             {milliseconds(100), milliseconds(1)}};
  EXPECT_THAT(FirstComeFirstServed(arrivals),
              testing::ElementsAre(milliseconds(30), milliseconds(35), milliseconds(101)));
  // They take 30, 25 and 1 ms.
  EXPECT_DOUBLE_EQ(OnTimeAlone(arrivals, milliseconds(25)), 2.0 / 3);
  EXPECT_DOUBLE_EQ(OnTimeAlone(arrivals, milliseconds(25), milliseconds(10)), 1.0);
  EXPECT_DOUBLE_EQ(OnTimeAlone({}, milliseconds(25)), 1.0);
}

}  // namespace
}  // namespace gpusched::bench
