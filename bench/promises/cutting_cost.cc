// What cutting a long launch costs: a 60 ms kernel through the daemon beside the whole launch
// straight on the driver with the same setting, turn by turn.
#include <cstdio>
#include <utility>

#include "promises/opencl_stage.h"
#include "promises/straight.h"
#include "promises/straight_kernels.h"
#include "promises/table.h"

namespace gpusched::bench {
namespace {

constexpr milliseconds kKernel{60};
// A block takes 30 us on two cores, so that a part of just under 1 ms has as many for each.
constexpr std::uint32_t kBlocks = 4'096;
constexpr const char* kBound = "--preemption-bound=2ms";
constexpr const char* kSameSetting = "POCL_WORK_GROUP_SPECIALIZATION=0";
constexpr const char* kDriversOwn = "POCL_WORK_GROUP_SPECIALIZATION=1";
constexpr int kRounds = 12, kFullRounds = 60, kLaunchesARound = 5;
constexpr double kMostOverWhole = 1.04;
// That it was cut at all: parts of just under 1 ms are about sixty.
constexpr double kFewestParts = 30;

// What the setting itself costs, a line for each kernel.
Result<std::string> SettingsCost() {
  std::string lines = "the setting's own cost, ms straight with the driver's own and with ours:\n";
  std::vector<std::vector<double>> times;
  for (const char* setting : {kDriversOwn, kSameSetting}) {
    Result<std::unique_ptr<Straight>> straight = Straight::Start({setting});
    if (!straight.ok()) return straight.status();
    Result<std::vector<double>> took = (*straight)->Kernels();
    if (!took.ok()) return took.status();
    if (took->size() != kStraightKernels.size()) {
      return Status(StatusCode::kInternal, "STRAIGHT_FAILED", "it did not time every kernel");
    }
    times.push_back(*std::move(took));
  }
  for (std::size_t i = 0; i < kStraightKernels.size(); ++i) {
    char line[96];
    std::snprintf(line, sizeof line, "  %-22s %8.3f %8.3f  x %.2f\n", kStraightKernels[i].name,
                  times[0][i], times[1][i], times[1][i] / times[0][i]);
    lines += line;
  }
  return lines;
}

}  // namespace

Result<Measurement> MeasureCuttingCost(Length length) {
  Result<std::unique_ptr<OpenClStage>> stage = OpenClStage::Raise({kBound});
  if (!stage.ok()) {
    if (auto lacks = LacksOpenCl(stage.status())) return Measurement{{}, *lacks, {}};
    return stage.status();
  }
  Result<std::unique_ptr<Straight>> straight = Straight::Start(SettingsOfTheDaemon());
  if (!straight.ok()) return straight.status();
  const Result<Spin> spin = (*straight)->Calibrate(kBlocks, kKernel);
  if (!spin.ok()) return spin.status();
  Result<std::unique_ptr<SpinWorker>> worker = (*stage)->Open("long", {});
  if (!worker.ok()) return worker.status();
  Result<Template> job = (*worker)->session().RegisterTemplate((*worker)->JobOf({*spin}));
  if (!job.ok()) return job.status();

  std::vector<double> whole, cut;
  const int rounds = length == Length::kFull ? kFullRounds : kRounds;
  for (int round = -1; round < rounds; ++round) {  // the first teaches the estimates
    const Result<std::vector<double>> took = (*straight)->Spins(*spin, kLaunchesARound);
    if (!took.ok()) return took.status();
    for (int i = 0; i < kLaunchesARound; ++i) {
      const nanoseconds begin = DaemonNow();
      Result<Submission> submission = (*worker)->session().Submit(*job);
      if (!submission.ok()) return submission.status();
      const Result<JobReport> report = submission->Wait();
      if (!report.ok()) return report.status();
      if (round >= 0) cut.push_back(Milliseconds(DaemonNow() - begin));
    }
    if (round >= 0) whole.insert(whole.end(), took->begin(), took->end());
  }
  const Result<std::vector<admin::Session>> sessions = (*stage)->admin().Sessions();
  if (!sessions.ok()) return sessions.status();
  const double jobs = (rounds + 1) * kLaunchesARound;
  const double parts = sessions->empty() ? 0 : static_cast<double>(sessions->front().commands);
  const Result<std::string> settings = SettingsCost();
  if (!settings.ok()) return settings.status();
  char remark[160];
  std::snprintf(remark, sizeof remark, "median whole %.2f ms, cut %.2f ms in %.1f parts\n",
                MedianOf(whole), MedianOf(cut), parts / jobs);
  return Measurement{.figures = {AtMost("60 ms kernel cut, over the whole",
                                        MedianOf(cut) / MedianOf(whole), "x", kMostOverWhole),
                                 AtLeast("parts of it", parts / jobs, "", kFewestParts)},
                     .not_run = {},
                     .remark = remark + *settings};
}

}  // namespace gpusched::bench
