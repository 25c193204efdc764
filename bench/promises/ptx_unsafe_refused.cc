// Each fixture that must not be cut, and whether its refusal says why.
#include <string>

#include "promises/table.h"
#include "support/ptx_refusals.h"

namespace gpusched::bench {

Result<Measurement> MeasurePtxUnsafeRefused(Length) {
  const Result<std::vector<test::Refusal>> refusals =
      test::CheckRefusals(GPUSCHED_SOURCE_FOLDER "/test/fixtures/ptx/unsafe");
  if (!refusals.ok()) return refusals.status();
  constexpr double kFewestFixtures = 15;
  int wrong = 0;
  std::string remark;
  for (const test::Refusal& each : *refusals) {
    if (!each.holds()) ++wrong;
    remark += each.fixture + ": " + (each.reason.empty() ? "may be cut" : each.reason) + "\n";
  }
  return Measurement{
      .figures = {AtLeast("fixtures", static_cast<double>(refusals->size()), "", kFewestFixtures),
                  AtMost("not refused with their reason", wrong, "", 0)},
      .not_run = {},
      .remark = remark};
}

}  // namespace gpusched::bench
