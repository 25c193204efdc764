// The cost file: its defaults, what it may say, and every error at once with its place.
#include "device/virtual/costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Costs, TheShippedDefaultsAreThoseBuiltIn) {
  const auto shipped = LoadCosts(GPUSCHED_COSTS_DIR "/default.yaml");
  ASSERT_TRUE(shipped) << shipped.status().ToString();
  EXPECT_EQ(*shipped, Costs{});
  EXPECT_EQ(*LoadCosts(""), Costs{});
  EXPECT_EQ(*ParseCosts("# nothing but a comment\n", "costs.yaml"), Costs{});
}

TEST(Costs, TheZeroFileCostsNothing) {
  const auto zero = LoadCosts(GPUSCHED_COSTS_DIR "/zero.yaml");
  ASSERT_TRUE(zero) << zero.status().ToString();
  EXPECT_EQ(*zero, (Costs{.launch_gap = Duration(0),
                          .chunk = Duration(0),
                          .session_switch = Duration(0),
                          .noise_ppb = 0,
                          .outlier_ppb = 0,
                          .outlier_factor = 1,
                          .copy_bandwidth = 0,
                          .seed = 1}));
}

TEST(Costs, ReadsEveryKeyExactly) {
  const auto costs = ParseCosts(
      "launch_gap: 1.5us\nchunk: 2us\nswitch: 0\nnoise: 0.123456789\noutlier_probability: 1\n"
      "outlier_factor: 3\ncopy_bandwidth: 1GiB\nseed: 18446744073709551615\n",
      "costs.yaml");
  ASSERT_TRUE(costs) << costs.status().ToString();
  EXPECT_EQ(*costs, (Costs{.launch_gap = Duration(1'500),
                           .chunk = Duration(2'000),
                           .session_switch = Duration(0),
                           .noise_ppb = 123'456'789,
                           .outlier_ppb = 1'000'000'000,
                           .outlier_factor = 3,
                           .copy_bandwidth = std::uint64_t{1} << 30,
                           .seed = UINT64_MAX}));
}

TEST(Costs, TellsEveryErrorWithItsPlace) {
  const auto costs = ParseCosts(
      "launch_gap: 8 parsecs\nchunk: 20us\nlaunch_gup: 8us\nnoise: 0.4\noutlier_factor: 0\nseed: "
      "-1\n"
      "copy_bandwidth: [fast]\nswitch: 2s\noutlier_probability: 0.0000000001\n",
      "costs.yaml");
  ASSERT_FALSE(costs);
  EXPECT_EQ(costs.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(costs.status().reason(), reason::kBadConfiguration);
  const std::string& message = costs.status().message();
  EXPECT_THAT(message, HasSubstr("costs.yaml:1:13: 'launch_gap' must be a duration"));
  EXPECT_THAT(message, HasSubstr("costs.yaml:3:1: unknown key 'launch_gup'"));
  EXPECT_THAT(message, HasSubstr("costs.yaml:4:8: 'noise'"));
  EXPECT_THAT(message, HasSubstr("costs.yaml:5:17: 'outlier_factor'"));
  EXPECT_THAT(message, HasSubstr("costs.yaml:6:7: 'seed'"));
  EXPECT_THAT(message, HasSubstr("costs.yaml:7:17: 'copy_bandwidth'"));
  EXPECT_THAT(message, HasSubstr("costs.yaml:8:9: 'switch'"));
  EXPECT_THAT(message, HasSubstr("costs.yaml:9:22: 'outlier_probability'"));
  EXPECT_THAT(message, Not(HasSubstr("costs.yaml:2")));
}

TEST(Costs, BrokenYamlIsToldWithItsPlace) {
  for (const char* text :
       {"launch_gap: [8us\nchunk: 20us\n", "a: b: c\n", "- 8us\n- 20us\n", "8us"}) {
    const auto costs = ParseCosts(text, "costs.yaml");
    ASSERT_FALSE(costs) << text;
    EXPECT_EQ(costs.status().reason(), reason::kBadConfiguration);
    EXPECT_THAT(costs.status().message(), HasSubstr("costs.yaml:")) << text;
  }
}

TEST(Costs, AFileThatCannotBeReadIsNamed) {
  for (const char* path : {"/nowhere/costs.yaml", "/tmp"}) {
    const auto costs = LoadCosts(path);
    ASSERT_FALSE(costs) << path;
    EXPECT_THAT(costs.status().message(), HasSubstr(path));
  }
}

}  // namespace
}  // namespace gpusched::device
