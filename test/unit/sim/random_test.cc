// Draws against what probability theory says of them.
#include "sim/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gpusched::sim {
namespace {

double AsDouble(Fixed x) { return static_cast<double>(x) / static_cast<double>(kOne); }
Fixed AsFixed(double x) { return static_cast<Fixed>(x * static_cast<double>(kOne)); }

TEST(FixedPoint, AgreesWithTheMathematicsLibrary) {
  for (double x = 0.001; x < 1'000'000; x *= 1.37) {
    EXPECT_NEAR(AsDouble(Log2(AsFixed(x))), std::log2(x), 1e-6);
    EXPECT_NEAR(AsDouble(Exp2(AsFixed(std::log2(x)))) / x, 1, 1e-6);
  }
  for (double x = 1; x < 11; x += 0.13) {
    EXPECT_NEAR(AsDouble(Gamma(AsFixed(x))) / std::tgamma(x), 1, 1e-6);
  }
}

TEST(FixedPoint, EndsWhereItsRangeEnds) {
  EXPECT_EQ(Exp2(64 * kOne), kLargest);
  EXPECT_EQ(Exp2(-64 * kOne), 0);
  EXPECT_EQ(Power(2 * kOne, 1'000 * kOne), kLargest);
}

TEST(ParseDecimal, IsExactAndTakesNothingElse) {
  EXPECT_EQ(ParseDecimal("12.5", 1'000), 12'500);
  EXPECT_EQ(ParseDecimal("-0.25", 100), -25);
  EXPECT_EQ(ParseDecimal("0.07666666666666666", 1'000'000'000), 76'666'666);
  for (const char* wrong :
       {"", "-", ".", "1e3", "1 ", "nan", "0x1", "1.2.3", "9223372036854775808"}) {
    EXPECT_FALSE(ParseDecimal(wrong, 1).has_value()) << wrong;
  }
}

struct Moments {
  double mean = 0, cv = 0;
};
template <typename Draw>
Moments MomentsOf(Draw draw, int draws = 200'000) {
  double sum = 0, squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = AsDouble(draw());
    sum += x;
    squares += x * x;
  }
  const double mean = sum / draws;
  return {mean, std::sqrt(squares / draws - mean * mean) / mean};
}

TEST(Random, ExponentialHasMeanAndDeviationOne) {
  Random random(1);
  const Moments m = MomentsOf([&] { return random.Exponential(); });
  EXPECT_NEAR(m.mean, 1, 0.01);
  EXPECT_NEAR(m.cv, 1, 0.02);
}

TEST(Random, GammaHasTheDeviationOfItsShape) {
  for (const double shape : {0.1, 0.5, 0.84, 1.0, 2.5, 30.0}) {
    Random random(2);
    const Moments m = MomentsOf([&] { return random.GammaShaped(AsFixed(shape)); });
    EXPECT_NEAR(m.mean, 1, 0.03) << shape;
    EXPECT_NEAR(m.cv * std::sqrt(shape), 1, 0.04) << shape;
  }
}

TEST(Random, WeibullHasTheDeviationOfItsShape) {
  for (const double shape : {0.5, 0.8, 1.0, 1.6, 3.0}) {
    Random random(3);
    const Moments m = MomentsOf([&] { return random.Weibull(AsFixed(shape)); });
    const double first = std::tgamma(1 + 1 / shape), second = std::tgamma(1 + 2 / shape);
    EXPECT_NEAR(m.mean, 1, 0.03) << shape;
    EXPECT_NEAR(m.cv / std::sqrt(second / (first * first) - 1), 1, 0.08) << shape;
  }
}

TEST(Random, BellIsBoundedAtThreeDeviations) {
  Random random(4);
  double squares = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = AsDouble(random.Bell());
    ASSERT_LE(std::abs(x), 3);
    squares += x * x;
  }
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
}

TEST(Random, ASeedMeansTheSameEverywhere) {
  Random random(5);
  EXPECT_EQ(random.Next(), 7'134'611'160'154'358'618u);
}

}  // namespace
}  // namespace gpusched::sim
