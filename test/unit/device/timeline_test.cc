// The virtual device's time, by arithmetic done by hand.
#include "device/virtual/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "device/virtual/cost_model.h"

namespace gpusched::device {
namespace {

using namespace std::chrono_literals;

constexpr SessionId kOne{.slot = 0, .serial = 1};
constexpr SessionId kTwo{.slot = 1, .serial = 2};

Time At(Duration since_epoch) { return Time(since_epoch); }

Costs WithoutNoise() { return {.noise_ppb = 0, .outlier_ppb = 0}; }

TEST(CostModel, AddsUpWhatACommandCosts) {
  const CostModel model(WithoutNoise());
  const Asked whole{.session = kOne, .work = 100us};
  const Asked chunk{.session = kOne, .work = 100us, .cut = true};
  EXPECT_EQ(model.DurationOf(whole, std::nullopt, 0), 108us);
  EXPECT_EQ(model.DurationOf(whole, kOne, 1), 108us);
  EXPECT_EQ(model.DurationOf(whole, kTwo, 1), 128us);
  EXPECT_EQ(model.DurationOf(chunk, kOne, 1), 128us);
  EXPECT_EQ(model.DurationOf(chunk, kTwo, 1), 148us);
}

TEST(CostModel, CopiesTakeBytesByBandwidth) {
  EXPECT_EQ(CostModel(WithoutNoise()).CopyWork(12'000'000), 1ms);
  EXPECT_EQ(CostModel(WithoutNoise()).CopyWork(0), 0ns);
  EXPECT_EQ(CostModel({.copy_bandwidth = 0}).CopyWork(UINT64_MAX), 0ns);
  EXPECT_EQ(CostModel({.copy_bandwidth = 1}).CopyWork(UINT64_MAX), kLongestWork);
}

TEST(CostModel, NoiseHasTheMeanTheDeviationAndTheBoundItPromises) {
  const CostModel model({.launch_gap = 0ns, .outlier_ppb = 0});
  constexpr int kCommands = 100'000;
  double sum = 0, squares = 0;
  for (int number = 0; number < kCommands; ++number) {
    const double factor =
        static_cast<double>(model.DurationOf({.session = kOne, .work = 1s}, kOne, number).count()) /
        1e9;
    ASSERT_GE(factor, 0.85);
    ASSERT_LE(factor, 1.15);
    sum += factor;
    squares += factor * factor;
  }
  const double mean = sum / kCommands;
  // Five standard errors of a mean and of a deviation over 100,000 commands.
  EXPECT_NEAR(mean, 1.0, 5 * 0.05 / std::sqrt(kCommands));
  EXPECT_NEAR(std::sqrt(squares / kCommands - mean * mean), 0.05, 0.001);
}

TEST(CostModel, OneCommandInTenThousandTakesTenTimesAsLong) {
  const CostModel model({.launch_gap = 0ns, .noise_ppb = 0});
  constexpr int kCommands = 1'000'000;
  int outliers = 0;
  for (int number = 0; number < kCommands; ++number) {
    const Duration duration = model.DurationOf({.session = kOne, .work = 1ms}, kOne, number);
    if (duration == 1ms) continue;
    ASSERT_EQ(duration, 10ms);
    ++outliers;
  }
  EXPECT_NEAR(outliers, 100, 50);  // five standard deviations of a count of 100
}

TEST(CostModel, TheSameSeedStreamAndNumberDrawTheSameNoise) {
  const auto draws = [](std::uint64_t seed, std::uint64_t stream) {
    const CostModel model({.seed = seed}, stream);
    std::vector<Duration> durations;
    for (int number = 0; number < 20; ++number) {
      durations.push_back(model.DurationOf({.session = kOne, .work = 1s}, kOne, number));
    }
    return durations;
  };
  EXPECT_EQ(draws(5, 1), draws(5, 1));
  EXPECT_NE(draws(5, 1), draws(6, 1));
  EXPECT_NE(draws(5, 1), draws(5, 2));
  EXPECT_NE(draws(5, 1), draws(6, 0));
}

TEST(Timeline, CommandsRunOneAfterTheOther) {
  Timeline timeline{CostModel(WithoutNoise())};
  const auto first = timeline.Append(At(1ms), {.session = kOne, .work = 92us});
  EXPECT_EQ(first.started, At(1ms));
  EXPECT_EQ(first.ended, At(1'100us));
  // Submitted while the first runs: starts at its end, and pays for the switch.
  const auto second = timeline.Append(At(1'050us), {.session = kTwo, .work = 72us});
  EXPECT_EQ(second.started, At(1'100us));
  EXPECT_EQ(second.ended, At(1'200us));
  // Submitted after the device fell idle; a chunk of the same session.
  const auto third = timeline.Append(At(2ms), {.session = kTwo, .work = 72us, .cut = true});
  EXPECT_EQ(third.started, At(2ms));
  EXPECT_EQ(third.ended, At(2'100us));
}

TEST(Timeline, WithoutCostsACommandWithoutWorkEndsWhereItStarts) {
  Timeline timeline{CostModel({.launch_gap = 0ns, .chunk = 0ns, .session_switch = 0ns})};
  const auto nothing = timeline.Append(At(5ms), {.session = kOne});
  EXPECT_EQ(nothing.started, At(5ms));
  EXPECT_EQ(nothing.ended, At(5ms));
  const auto other = timeline.Append(At(5ms), {.session = kTwo, .cut = true});
  EXPECT_EQ(other.ended, At(5ms));
}

TEST(Timeline, TheLongestWorkDoesNotOverflow) {
  Timeline timeline{CostModel({.outlier_ppb = 1'000'000'000, .outlier_factor = 1'000})};
  const auto span = timeline.Append(At(0ms), {.session = kOne, .work = kLongestWork});
  EXPECT_GT(span.ended, span.started + kLongestWork);
}

}  // namespace
}  // namespace gpusched::device
