// Constructs of OpenCL C cut at random on the device, byte by byte beside the whole on the driver.
#include <filesystem>

#include "promises/table.h"
#ifdef GPUSCHED_HAVE_OPENCL
#include "support/opencl_cut_check.h"
#endif

namespace gpusched::bench {

#ifdef GPUSCHED_HAVE_OPENCL
namespace {

constexpr int kCuts = 20, kFullCuts = 500;
constexpr std::uint64_t kSeed = 30;

}  // namespace

Result<Measurement> MeasureCutEqualsWhole(Length length) {
  const int cuts = length == Length::kFull ? kFullCuts : kCuts;
  const std::string cache =
      (std::filesystem::path(GPUSCHED_BUILD_FOLDER) / "opencl_cache").string();
  const auto outcomes = test::CheckOpenClCuts(test::CutCases(), cuts, kSeed, cache);
  if (outcomes.status().code() == StatusCode::kNotFound) {
    return Measurement{{}, "no OpenCL platform: apt-get install pocl-opencl-icd", {}};
  }
  if (!outcomes.ok()) return outcomes.status();
  int different = 0, unsteady = 0, fewest = cuts;
  std::string remark;
  for (const test::CutCheckOutcome& outcome : *outcomes) {
    if (outcome.unsteady) {
      ++unsteady;
      remark += outcome.construct + ": left out, two whole launches differ\n";
      continue;
    }
    fewest = std::min(fewest, outcome.cuts);
    if (outcome.difference.empty()) continue;
    ++different;
    remark += outcome.construct + ": " + outcome.difference + "\n";
  }
  return Measurement{.figures = {AtLeast("constructs", static_cast<double>(outcomes->size()), "",
                                         static_cast<double>(test::CutCases().size())),
                                 AtLeast("random cuts of each", fewest, "", kCuts),
                                 AtMost("constructs that differ", different, "", 0),
                                 AtMost("constructs left out", unsteady, "", 0)},
                     .not_run = {},
                     .remark = remark};
}
#else
Result<Measurement> MeasureCutEqualsWhole(Length) {
  return Measurement{
      {}, "built without OpenCL: apt-get install opencl-headers ocl-icd-opencl-dev", {}};
}
#endif

}  // namespace gpusched::bench
