// The main job with kernels that compute on OpenCL: a recommendation service beside its update.
#include <algorithm>

#include "promises/no_platform.h"
#include "promises/table.h"
#include "support/figures_table.h"
#include "support/main_job.h"

namespace gpusched::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLeadIn{200};

}  // namespace

Result<Measurement> MeasureOpenClDemo(Length length) {
  Result<std::unique_ptr<RealStage>> stage = RealStage::Raise();
  if (!stage.ok()) return NotRun(stage.status());
  const std::vector<PolicyChoice> policies = BuiltInPolicies();
  Timetable timetable{.start = {}, .length = length == Length::kFull ? seconds(20) : seconds(8)};
  const RealWork work = RecommendationWork((*stage)->admin());
  BesideUpdateOptions options = RealMainJob(**stage, work);
  options.requests = Repeated(MainJobRequests(timetable.each()), timetable.each(),
                              static_cast<int>(policies.size()));
  Result<std::unique_ptr<BesideUpdate>> job = BesideUpdate::Open(options);
  if (!job.ok()) return job.status();
  if (Status status = (*stage)->SetBound(kDefaultBound); !status.ok()) return status;
  timetable.start = std::chrono::steady_clock::now() + kLeadIn;
  if (Status status = (*job)->Begin(timetable.start); !status.ok()) return status;
  const auto windows =
      UnderEachPolicy((*stage)->admin(), {job->get()}, policies, timetable, nullptr);
  if (!windows.ok()) return windows.status();
  const Result<BesideUpdate::Results> results = (*job)->Finish();
  if (!results.ok()) return results.status();

  FiguresTable table;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    table.Add(policies[i].label, (*windows)[i].front());
  }
  const WindowFigures& fair = (*windows)[0].front();
  const WindowFigures& priority = (*windows)[2].front();
  if (!priority.requests->on_time || !priority.update->rest_used) {
    return Status(StatusCode::kUnavailable, "NOTHING_DONE", "a service got nothing done");
  }
  // Under round_robin the p99 may be one that was given up, or never answered: then the true one is
  // longer still, and no shorter than what is said here.
  const auto ms = [&timetable](const Measured& measured) {
    return static_cast<double>(std::min(measured.value, timetable.each()).count()) / 1e6;
  };
  return Measurement{
      .figures =
          {AtLeast("preemptive_priority: on time", 100 * *priority.requests->on_time, "%", 99),
           AtMost("its p99 beside round_robin's", ms(priority.requests->p99), "ms",
                  0.5 * ms(fair.requests->p99)),
           AtLeast("update: of what requests leave", 100 * *priority.update->rest_used, "%", 80),
           AtLeast("answers compared with the CPU's",
                   static_cast<double>(results->requests.compared), "", 10),
           AtMost("wrong answers, or a loss that does not fall",
                  static_cast<double>(results->requests.wrong + results->update.wrong), "", 0)},
      .not_run = {},
      .remark = table.Text() + results->requests.remark + "; update: " + results->update.remark};
}

}  // namespace gpusched::bench
