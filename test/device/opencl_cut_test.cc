// Launches cut at random beside the whole launch straight on the driver.
#include <gtest/gtest.h>

#include "device/opencl_machine.h"
#include "support/opencl_cut_check.h"

namespace gpusched::device {
namespace {

constexpr int kCuts = 3;
constexpr std::uint64_t kSeed = 3;

TEST(OpenClCuts, GiveWhatTheWholeLaunchGives) {
  const CacheDirectory cache;
  const auto outcomes = test::CheckOpenClCuts(test::CutCases(), kCuts, kSeed, cache.path());
  if (outcomes.status().code() == StatusCode::kNotFound) GTEST_SKIP() << "no OpenCL driver";
  ASSERT_TRUE(outcomes) << outcomes.status().ToString();
  for (const test::CutCheckOutcome& outcome : *outcomes) {
    EXPECT_EQ(outcome.difference, "") << outcome.construct;
    EXPECT_FALSE(outcome.unsteady) << outcome.construct;
    EXPECT_EQ(outcome.cuts, kCuts) << outcome.construct;
  }
}

}  // namespace
}  // namespace gpusched::device
