// Frames 60 times a second beside analytics that never end, computed on OpenCL.
#include "promises/no_platform.h"
#include "promises/table.h"
#include "support/figures_table.h"

namespace gpusched::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLeadIn{200};

}  // namespace

Result<Measurement> MeasureGame(Length length) {
  Result<std::unique_ptr<RealStage>> stage = RealStage::Raise();
  if (!stage.ok()) return NotRun(stage.status());
  const PolicyChoice policy = BuiltInPolicies()[2];
  Timetable timetable{.start = {}, .length = length == Length::kFull ? seconds(60) : seconds(20)};
  const RealWork work = GameWork((*stage)->admin());
  BesideUpdateOptions options = RealGame(**stage, work);
  options.requests = FramesDue(timetable.each());
  Result<std::unique_ptr<BesideUpdate>> job = BesideUpdate::Open(options);
  if (!job.ok()) return job.status();
  if (Status status = (*stage)->SetBound(kDefaultBound); !status.ok()) return status;
  timetable.start = std::chrono::steady_clock::now() + kLeadIn;
  if (Status status = (*job)->Begin(timetable.start); !status.ok()) return status;
  const auto windows =
      UnderEachPolicy((*stage)->admin(), {job->get()}, {policy}, timetable, nullptr);
  if (!windows.ok()) return windows.status();
  const Result<BesideUpdate::Results> results = (*job)->Finish();
  if (!results.ok()) return results.status();

  const WindowFigures& figures = windows->front().front();
  if (!figures.requests->on_time || !figures.update->rest_used) {
    return Status(StatusCode::kUnavailable, "NOTHING_DONE", "a service got nothing done");
  }
  FiguresTable table;
  table.Add(policy.label, figures);
  return Measurement{
      .figures =
          {AtLeast("frames within 20 ms", 100 * *figures.requests->on_time, "%", 99),
           AtLeast("analytics: of what frames leave", 100 * *figures.update->rest_used, "%", 80),
           AtMost("longest analysis", static_cast<double>(figures.update->longest.count()) / 1e9,
                  "s", 5),
           AtLeast("results compared with the CPU's",
                   static_cast<double>(results->requests.compared + results->update.compared), "",
                   10),
           AtMost("of them wrong",
                  static_cast<double>(results->requests.wrong + results->update.wrong), "", 0)},
      .not_run = {},
      .remark = table.Text() + results->requests.remark + "; " + results->update.remark};
}

}  // namespace gpusched::bench
