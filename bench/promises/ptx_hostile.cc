// Broken PTX, fat binaries and cubins by the hundred thousand, in a process that may die of it.
#include <sstream>
#include <string>

#include "promises/child.h"
#include "promises/table.h"

namespace gpusched::bench {
namespace {

constexpr char kExecutions[] = "100000", kFullExecutions[] = "10000000", kSeed[] = "11";
constexpr std::chrono::seconds kWithin{55}, kFullWithin{7'200};
constexpr double kSlowestMs = 2'000, kPeakMib = 512;

}  // namespace

Result<Measurement> MeasurePtxHostile(Length length) {
  const bool full = length == Length::kFull;
  const Result<Ran> ran =
      Run({ProgramPath("gpusched-fuzz-ptx"), GPUSCHED_SOURCE_FOLDER "/test/fixtures/ptx",
           full ? kFullExecutions : kExecutions, kSeed},
          full ? kFullWithin : kWithin);
  if (!ran.ok()) return ran.status();
  if (ran->exit_status != 0) {
    return Status(
        StatusCode::kInternal, "CRASHED",
        "the readers ended with " + std::to_string(ran->exit_status) + ": " + ran->output);
  }
  // "executions 1 accepted 2 slowest_ms 3 peak_mib 4"
  std::istringstream words(ran->output);
  std::string word;
  double executions = 0, accepted = 0, slowest = 0, peak = 0;
  words >> word >> executions >> word >> accepted >> word >> slowest >> word >> peak;
  return Measurement{.figures = {AtLeast("executions", executions, "", full ? 1e7 : 1e5),
                                 AtMost("slowest", slowest, "ms", kSlowestMs),
                                 AtMost("memory at most", peak, "MiB", kPeakMib)},
                     .not_run = {},
                     .remark = std::to_string(static_cast<long>(accepted)) + " were still taken\n"};
}

}  // namespace gpusched::bench
