// Kernels cut at random give what the whole gives; a wrong rewriting is noticed; broken input is
// survived.
#include <gtest/gtest.h>

#include <utility>

#include "fuzz/ptx_fuzz.h"
#include "support/ptx_cut_check.h"

namespace gpusched::test {
namespace {

constexpr char kFolder[] = GPUSCHED_PTX_FIXTURES "/compiled";

TEST(WholeAndCutTest, RandomPartsGiveTheSameBytes) {
  const Result<std::vector<CutCheckResult>> results = CheckCuts(kFolder, 3, 1);
  ASSERT_TRUE(results.ok()) << results.status().ToString();
  EXPECT_GE(results->size(), 20u);
  for (const CutCheckResult& each : *results) EXPECT_EQ(each.difference, "") << each.kernel;
}

// Each is a mistake that the rewriting could make.
TEST(WholeAndCutTest, AWrongRewritingIsNoticed) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"add.u32 %gpusched_ctaid_x", "sub.u32 %gpusched_ctaid_x"},
      {"[__gpusched_box+0]", "[__gpusched_box+4]"},
      {"[__gpusched_box+12]", "[__gpusched_box+0]"},
      {"mov.u32 %gpusched_physical, %ctaid.x", "mov.u32 %gpusched_physical, %ctaid.y"},
  };
  for (const auto& [from, to] : mistakes) {
    const Result<std::vector<CutCheckResult>> results = CheckCuts(
        kFolder, 2, 1,
        [&, f = from, t = to](std::string text) { return Replaced(std::move(text), f, t); });
    ASSERT_TRUE(results.ok()) << results.status().ToString();
    int noticed = 0;
    for (const CutCheckResult& each : *results) noticed += each.difference.empty() ? 0 : 1;
    EXPECT_GT(noticed, 0) << from;
  }
}

TEST(HostileInputTest, ReadersSurviveIt) {
  const Result<PtxFuzz> fuzz = PtxFuzz::Open(GPUSCHED_PTX_FIXTURES);
  ASSERT_TRUE(fuzz.ok()) << fuzz.status().ToString();
  constexpr std::uint64_t kExecutions = 2'000;
  const FuzzReport report = fuzz->Run(kExecutions, 3);
  EXPECT_GT(report.executions, kExecutions);
  EXPECT_GT(report.accepted, 0u);
}

}  // namespace
}  // namespace gpusched::test
