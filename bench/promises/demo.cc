// The main job: a recommendation service beside an endless update, under each policy in turn.
#include "promises/stage.h"
#include "promises/table.h"
#include "support/beside_update.h"
#include "support/figures_table.h"
#include "support/main_job.h"

namespace gpusched::bench {
namespace {

constexpr milliseconds kLeadIn{200};

}  // namespace

Result<Measurement> MeasureDemo(Length length) {
  Result<std::unique_ptr<Stage>> stage = Stage::Raise();
  if (!stage.ok()) return stage.status();
  const std::vector<PolicyChoice> policies = BuiltInPolicies();
  Timetable timetable{.start = std::chrono::steady_clock::now() + kLeadIn,
                      .length = length == Length::kFull ? seconds(20) : seconds(8)};
  const Arrivals turn = MainJobRequests(timetable.each());
  const BesideUpdateOptions options{
      .endpoint = (*stage)->daemon().endpoint(),
      .requests = Repeated(turn, timetable.each(), static_cast<int>(policies.size())),
      .target = kMainTarget};
  Result<std::unique_ptr<BesideUpdate>> job = BesideUpdate::Start(options, timetable.start);
  if (!job.ok()) return job.status();
  const auto windows =
      UnderEachPolicy((*stage)->admin(), {job->get()}, policies, timetable, nullptr);
  if (!windows.ok()) return windows.status();

  FiguresTable table;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    table.Add(policies[i].label, (*windows)[i].front());
  }
  const WindowFigures& fair = (*windows)[0].front();
  const WindowFigures& priority = (*windows)[2].front();
  if (!priority.requests->on_time || !priority.update->rest_used) {
    return Status(StatusCode::kUnavailable, "NOTHING_DONE", "a service got nothing done");
  }
  // Under round_robin the p99 may be one that was given up: then the true one is longer still.
  return Measurement{
      .figures = {AtLeast("preemptive_priority: on time", 100 * *priority.requests->on_time, "%",
                          99),
                  AtMost("its p99 beside round_robin's", Milliseconds(priority.requests->p99.value),
                         "ms", 0.5 * Milliseconds(fair.requests->p99.value)),
                  AtLeast("update: of what requests leave", 100 * *priority.update->rest_used, "%",
                          85)},
      .not_run = {},
      .remark = table.Text()};
}

}  // namespace gpusched::bench
