// Rates against water-filling by bisection, lags against rate x time, both computed here.
#include "core/fluid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace gpusched::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Share WithWeight(int weight, double min = 0, double max = 1, bool strict = false) {
  Share share;
  share.weight = weight;
  share.min = static_cast<Rate>(min * kWholeDevice);
  share.max = static_cast<Rate>(max * kWholeDevice);
  share.strict = strict;
  return share;
}

double RateOf(const Fluid& fluid, std::uint32_t slot) {
  Account account;
  fluid.Describe(slot, account);
  return static_cast<double>(account.rate) / kWholeDevice;
}

double Milliseconds(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

class FluidTest : public ::testing::Test {
 protected:
  Fluid fluid_{seconds(10), milliseconds(100)};
  void SetUp() override { fluid_.SetRule(ShareRule::kWeighted); }
  void Work(std::uint32_t slot, const Share& share) {
    fluid_.Add(slot, share);
    fluid_.SetActive(slot, true);
    fluid_.SetRunnable(slot, true);
  }
};

TEST_F(FluidTest, RatesFollowWeights) {
  Work(0, WithWeight(70));
  Work(1, WithWeight(30));
  EXPECT_NEAR(RateOf(fluid_, 0), 0.7, 1e-8);
  EXPECT_NEAR(RateOf(fluid_, 1), 0.3, 1e-8);
}

TEST_F(FluidTest, ASessionWithoutWorkHasNoRateAndItsPartIsLent) {
  Work(0, WithWeight(70));
  Work(1, WithWeight(30));
  fluid_.SetActive(0, false);
  EXPECT_EQ(RateOf(fluid_, 0), 0);
  EXPECT_NEAR(RateOf(fluid_, 1), 1.0, 1e-8);
}

TEST_F(FluidTest, MinIsTakenFromTheOthers) {
  Work(0, WithWeight(1, 0.5));
  Work(1, WithWeight(99));
  Work(2, WithWeight(100));
  EXPECT_NEAR(RateOf(fluid_, 0), 0.5, 1e-8);
  EXPECT_NEAR(RateOf(fluid_, 1), 0.5 * 99 / 199, 1e-8);
}

TEST_F(FluidTest, MaxIsGivenToTheOthers) {
  Work(0, WithWeight(900, 0, 0.2));
  Work(1, WithWeight(100));
  EXPECT_NEAR(RateOf(fluid_, 0), 0.2, 1e-8);
  EXPECT_NEAR(RateOf(fluid_, 1), 0.8, 1e-8);
}

TEST_F(FluidTest, WhatNobodyMayTakeIsNobodys) {
  Work(0, WithWeight(1, 0, 0.2));
  Work(1, WithWeight(1, 0, 0.3));
  EXPECT_NEAR(RateOf(fluid_, 0), 0.2, 1e-8);
  EXPECT_NEAR(RateOf(fluid_, 1), 0.3, 1e-8);
}

TEST_F(FluidTest, AStrictMinStaysFreeWithoutWork) {
  fluid_.Add(0, WithWeight(1, 0.4, 1, true));
  Work(1, WithWeight(50));
  EXPECT_NEAR(RateOf(fluid_, 1), 0.6, 1e-8);
  fluid_.SetActive(0, true);
  EXPECT_NEAR(RateOf(fluid_, 0), 0.4, 1e-8);
  fluid_.Remove(0);
  EXPECT_NEAR(RateOf(fluid_, 1), 1.0, 1e-8);
}

TEST_F(FluidTest, RoundRobinCountsNoWeights) {
  Work(0, WithWeight(1));
  Work(1, WithWeight(10'000, 0.9));
  fluid_.SetRule(ShareRule::kEqual);
  EXPECT_NEAR(RateOf(fluid_, 0), 0.5, 1e-8);
}

TEST_F(FluidTest, LagIsServiceOwedLessCharged) {
  Work(0, WithWeight(70));
  Work(1, WithWeight(30));
  fluid_.Advance(milliseconds(10));
  fluid_.Charge(0, milliseconds(10));
  EXPECT_NEAR(Milliseconds(fluid_.Lag(0)), -3.0, 1e-5);
  EXPECT_NEAR(Milliseconds(fluid_.Lag(1)), 3.0, 1e-5);
  EXPECT_NEAR(Milliseconds(fluid_.Asked(0)), 7.0, 1e-5);
}

TEST_F(FluidTest, LagStandsStillWithoutWork) {
  Work(0, WithWeight(70));
  Work(1, WithWeight(30));
  fluid_.Advance(milliseconds(10));
  fluid_.Charge(0, milliseconds(10));
  fluid_.SetRunnable(1, false);
  fluid_.SetActive(1, false);
  fluid_.Advance(milliseconds(100));
  EXPECT_NEAR(Milliseconds(fluid_.Lag(1)), 3.0, 1e-5);
}

TEST_F(FluidTest, LagSurvivesEveryChangeOfRule) {
  Work(0, WithWeight(70));
  Work(1, WithWeight(30, 0, 0.1));
  fluid_.Advance(milliseconds(10));
  fluid_.Charge(0, milliseconds(10));
  const Duration before = fluid_.Lag(0);
  for (const ShareRule rule : {ShareRule::kEqual, ShareRule::kNone, ShareRule::kWeighted}) {
    fluid_.SetRule(rule);
    EXPECT_NEAR(Milliseconds(fluid_.Lag(0)), Milliseconds(before), 1e-4);
  }
}

TEST_F(FluidTest, LagsStandStillWhereNoSharesArePromised) {
  Work(0, WithWeight(70));
  fluid_.SetRule(ShareRule::kNone);
  fluid_.Advance(milliseconds(10));
  fluid_.Charge(0, milliseconds(10));
  EXPECT_EQ(fluid_.Lag(0), Duration(0));
}

TEST_F(FluidTest, WhoLeavesSpreadsItsLagByRate) {
  Work(0, WithWeight(60));
  Work(1, WithWeight(30));
  Work(2, WithWeight(10));
  fluid_.Advance(milliseconds(10));
  fluid_.Charge(0, milliseconds(10));  // lags -4, +3, +1
  fluid_.Remove(0);
  EXPECT_NEAR(Milliseconds(fluid_.Lag(1)), 3.0 - 4.0 * 0.75, 1e-4);
  EXPECT_NEAR(Milliseconds(fluid_.Lag(2)), 1.0 - 4.0 * 0.25, 1e-4);
}

TEST_F(FluidTest, WhoRunsOutOfWorkTakesNoLargerClaimAlongThanItMay) {
  Work(0, WithWeight(50));
  Work(1, WithWeight(30));
  Work(2, WithWeight(20));
  fluid_.Advance(milliseconds(400));
  fluid_.Charge(1, milliseconds(240));
  fluid_.Charge(2, milliseconds(160));  // lags +200, -120, -80
  fluid_.SetActive(0, false);
  EXPECT_NEAR(Milliseconds(fluid_.Lag(0)), 100, 1e-4);
  EXPECT_NEAR(Milliseconds(fluid_.Lag(1)), -120 + 100 * 0.6, 1e-4);
  EXPECT_NEAR(Milliseconds(fluid_.Lag(2)), -80 + 100 * 0.4, 1e-4);
  EXPECT_NEAR(Milliseconds(fluid_.Asked(0)), 200, 1e-4);
}

// What the rates must be: the level by bisection, in floating point.
std::vector<double> WaterFilled(const std::vector<Share>& shares, const std::vector<bool>& active) {
  double room = 1;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i].strict && !active[i]) room -= static_cast<double>(shares[i].min) / kWholeDevice;
  }
  const auto at = [&](double level) {
    std::vector<double> rates(shares.size(), 0);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (!active[i]) continue;
      rates[i] =
          std::clamp(shares[i].weight * level, static_cast<double>(shares[i].min) / kWholeDevice,
                     static_cast<double>(shares[i].max) / kWholeDevice);
    }
    return rates;
  };
  double low = 0, high = 2;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const double rate : at(middle)) sum += rate;
    (sum > room ? high : low) = middle;
  }
  return at(low);
}

TEST_F(FluidTest, AnyMixIsWaterFilled) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    Fluid fluid(seconds(10), milliseconds(100));
    fluid.SetRule(ShareRule::kWeighted);
    const std::size_t n = 1 + random() % 20;
    std::vector<Share> shares;
    std::vector<bool> active(n, false);
    double min_left = 1;
    for (std::size_t i = 0; i < n; ++i) {
      const double min =
          random() % 3 == 0 ? min_left * static_cast<double>(random() % 50) / 100 : 0;
      const double max =
          random() % 3 == 0 ? std::max(min, 0.01 + static_cast<double>(random() % 60) / 100) : 1;
      min_left -= min;
      const bool strict = min > 0 && random() % 4 == 0;
      shares.push_back(WithWeight(1 + static_cast<int>(random() % 10'000), min, max, strict));
      fluid.Add(static_cast<std::uint32_t>(i), shares.back());
    }
    for (int flip = 0; flip < 60; ++flip) {
      const std::size_t i = random() % n;
      active[i] = !active[i];
      fluid.SetActive(static_cast<std::uint32_t>(i), active[i]);
      const std::vector<double> expected = WaterFilled(shares, active);
      for (std::size_t k = 0; k < n; ++k) {
        ASSERT_NEAR(RateOf(fluid, static_cast<std::uint32_t>(k)), expected[k], 1e-6)
            << "round " << round << " flip " << flip << " session " << k;
      }
    }
  }
}

TEST_F(FluidTest, SomeoneRunnableIsAlwaysOwed) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 100; ++round) {
    Fluid fluid(seconds(10), milliseconds(100));
    fluid.SetRule(ShareRule::kWeighted);
    const std::uint32_t n = 2 + static_cast<std::uint32_t>(random() % 12);
    for (std::uint32_t i = 0; i < n; ++i) {
      fluid.Add(i, WithWeight(1 + static_cast<int>(random() % 10'000), random() % 4 == 0 ? 0.05 : 0,
                              random() % 4 == 0 ? 0.3 : 1));
      fluid.SetActive(i, true);
      fluid.SetRunnable(i, true);
    }
    std::vector<bool> runnable(n, true);
    for (int step = 0; step < 200; ++step) {
      const Duration ran{static_cast<std::int64_t>(random() % 3'000'000)};
      fluid.Advance(ran);
      fluid.Charge(static_cast<std::uint32_t>(random() % n), ran);
      const auto flip = static_cast<std::uint32_t>(random() % n);
      runnable[flip] = flip == 0 || random() % 2 == 0;
      fluid.SetRunnable(flip, runnable[flip]);
      const FluidClock clock = fluid.Clock();
      bool owed = false;
      for (std::uint32_t i = 0; i < n; ++i) {
        Account account;
        fluid.Describe(i, account);
        owed |= runnable[i] && account.zero_lag <= clock.Par(account.band);
      }
      ASSERT_TRUE(owed) << "round " << round << " step " << step;
    }
  }
}

}  // namespace
}  // namespace gpusched::core
