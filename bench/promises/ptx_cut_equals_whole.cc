// Kernels cut at random on the interpreter, byte by byte beside the whole; then with a mistake in.
#include <string>
#include <utility>

#include "promises/table.h"
#include "support/ptx_cut_check.h"

namespace gpusched::bench {
namespace {

constexpr char kFolder[] = GPUSCHED_SOURCE_FOLDER "/test/fixtures/ptx/compiled";
constexpr int kCuts = 20, kFullCuts = 500, kFewestKernels = 20;
constexpr std::uint64_t kSeed = 20;

}  // namespace

Result<Measurement> MeasurePtxCutEqualsWhole(Length length) {
  const int cuts = length == Length::kFull ? kFullCuts : kCuts;
  const Result<std::vector<test::CutCheckResult>> results = test::CheckCuts(kFolder, cuts, kSeed);
  if (!results.ok()) return results.status();
  int different = 0;
  std::string remark;
  for (const test::CutCheckResult& each : *results) {
    if (each.difference.empty()) continue;
    ++different;
    remark += each.kernel + ": " + each.difference + "\n";
  }
  const Result<std::vector<test::CutCheckResult>> spoiled =
      test::CheckCuts(kFolder, 1, kSeed, [](std::string text) {
        return test::Replaced(std::move(text), "add.u32 %gpusched_ctaid_x",
                              "sub.u32 %gpusched_ctaid_x");
      });
  if (!spoiled.ok()) return spoiled.status();
  int noticed = 0;
  for (const test::CutCheckResult& each : *spoiled) noticed += each.difference.empty() ? 0 : 1;
  return Measurement{
      .figures = {AtLeast("kernels", static_cast<double>(results->size()), "", kFewestKernels),
                  AtLeast("random cuts of each", cuts, "", kCuts),
                  AtMost("kernels that differ", different, "", 0),
                  AtLeast("kernels that notice a broken rewriting", noticed, "", 1)},
      .not_run = {},
      .remark = remark};
}

}  // namespace gpusched::bench
