// The conformance suite of devices, run on each backend: the same tests, all passed.
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "promises/child.h"
#include "promises/table.h"

namespace gpusched::bench {
namespace {

constexpr std::chrono::seconds kWithin{60};
constexpr double kFewestTests = 25;
constexpr const char* kPrograms[] = {"device_test", "opencl_test",
#ifdef GPUSCHED_HAVE_CUDA
                                     "cuda_test"
#endif
};

struct Verdicts {
  std::set<std::string> passed, failed, skipped;  // names of tests, without the backend
};

// Reads "[       OK ] Virtual/DeviceConformance.Name/default_costs (3 ms)".
Result<std::map<std::string, Verdicts>> Suite(const std::string& program) {
  const Result<Ran> ran =
      Run({ProgramPath(program), "--gtest_filter=*DeviceConformance*"}, kWithin);
  if (!ran.ok()) return ran.status();
  std::map<std::string, Verdicts> by_backend;
  std::istringstream lines(ran->output);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() < 13 || line[0] != '[' || line.find("DeviceConformance.") == line.npos)
      continue;
    const std::string word = line.substr(1, 10);
    const std::string full = line.substr(13, line.find(' ', 13) - 13);
    const std::size_t dot = full.find('.'), slash = full.rfind('/');
    if (dot == full.npos || slash < dot || slash == full.npos) continue;
    Verdicts& verdicts = by_backend[full.substr(slash + 1)];
    const std::string name = full.substr(dot + 1, slash - dot - 1);
    if (word.find("OK") != word.npos) verdicts.passed.insert(name);
    if (word.find("FAILED") != word.npos) verdicts.failed.insert(name);
    if (word.find("SKIPPED") != word.npos) verdicts.skipped.insert(name);
  }
  return by_backend;
}

}  // namespace

Result<Measurement> MeasureDeviceContract(Length) {
  std::map<std::string, Verdicts> all;
  for (const char* program : kPrograms) {
    const auto suite = Suite(program);
    if (!suite.ok()) return suite.status();
    all.insert(suite->begin(), suite->end());
  }
  if (all["opencl"].passed.empty() && all["opencl"].failed.empty()) {
    return Measurement{{}, "no OpenCL platform: apt-get install pocl-opencl-icd", {}};
  }
  const Verdicts& reference = all["default_costs"];
  double failed = 0, skipped = 0, differing = 0;
  std::string remark;
  for (const auto& [backend, verdicts] : all) {
    remark += backend + ": " + std::to_string(verdicts.passed.size()) + " passed\n";
    for (const std::string& name : verdicts.failed) remark += backend + ": " + name + " failed\n";
    for (const std::string& name : verdicts.skipped) remark += backend + ": " + name + " skipped\n";
    failed += static_cast<double>(verdicts.failed.size());
    skipped += static_cast<double>(verdicts.skipped.size());
    differing += verdicts.passed == reference.passed ? 0 : 1;
  }
  return Measurement{
      .figures = {AtLeast("tests of the contract", static_cast<double>(reference.passed.size()), "",
                          kFewestTests),
                  AtLeast("backends", static_cast<double>(all.size()), "",
                          // The virtual device counts twice, with costs and without.
                          static_cast<double>(std::size(kPrograms) + 1)),
                  AtMost("tests failed", failed, "", 0), AtMost("tests skipped", skipped, "", 0),
                  AtMost("backends that passed other tests", differing, "", 0)},
      .not_run = {},
      .remark = remark};
}

}  // namespace gpusched::bench
