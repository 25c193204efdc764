// Errors of the CUDA runtime at every place, on the stand-in: each order is answered once.
#include <map>
#include <sstream>

#include "promises/child.h"
#include "promises/table.h"

namespace gpusched::bench {
#ifdef GPUSCHED_HAVE_CUDA
namespace {

constexpr std::chrono::seconds kWithin{300};

// "name value" a line, as gpusched-cuda-faults prints them; what follows "first " is words.
struct Told {
  std::map<std::string, double> figures;
  std::string first;
};

Told Read(const std::string& output) {
  Told told;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string name = line.substr(0, space);
    if (name == "first") {
      told.first = line.substr(space + 1);
    } else {
      told.figures[name] = std::strtod(line.c_str() + space, nullptr);
    }
  }
  return told;
}

}  // namespace
#endif

Result<Measurement> MeasureCudaFaults(Length length) {
#ifdef GPUSCHED_HAVE_CUDA
  const std::string most = length == Length::kFull ? "1000" : "200";
  const Result<Ran> ran = Run({ProgramPath("gpusched-cuda-faults"), most}, kWithin);
  if (!ran.ok()) return ran.status();
  if (ran->exit_status != 0) {
    return Status(
        StatusCode::kInternal, "FAULTS_UNFINISHED",
        "gpusched-cuda-faults ended with " + std::to_string(ran->exit_status) + ": " + ran->output);
  }
  Told told = Read(ran->output);
  // The stories of single errors are tests; the program ran those, too.
  const Result<Ran> tests = Run({ProgramPath("cuda_test"), "--gtest_filter=Cuda.*"}, kWithin);
  if (!tests.ok()) return tests.status();
  return Measurement{
      .figures = {AtLeast("calls that failed in turn", told.figures["most"], "", 200),
                  AtLeast("stories played", told.figures["stories"], "", 1'600),
                  AtMost("completions lost", told.figures["unanswered"], "", 0),
                  AtMost("completions doubled", told.figures["doubled"], "", 0),
                  AtMost("wrong results called done", told.figures["wrong_results"], "", 0),
                  AtMost("losses of the device told wrongly", told.figures["wrong_losses"], "", 0),
                  AtMost("tests of who gets which error that failed",
                         tests->exit_status == 0 ? 0 : 1, "", 0)},
      .not_run = {},
      .remark = std::to_string(static_cast<std::uint64_t>(told.figures["failed"])) +
                " commands failed and " +
                std::to_string(static_cast<std::uint64_t>(told.figures["lost"])) +
                " were lost, of " +
                std::to_string(static_cast<std::uint64_t>(told.figures["orders"])) + " orders" +
                (told.first.empty() ? "" : "; first: " + told.first)};
#else
  (void)length;
  return Measurement{{}, "built without the CUDA toolkit", {}};
#endif
}

}  // namespace gpusched::bench
