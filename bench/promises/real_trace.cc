// Two recorded request traces at once on two devices, each beside an endless update.
//
// The yardstick is computed from the file alone: what would be met if the requests had the device
// to themselves, first come first served, at no cost.
#include <algorithm>
#include <array>
#include <utility>

#include "promises/stage.h"
#include "promises/table.h"
#include "support/beside_update.h"
#include "support/figures_table.h"
#include "support/trace.h"

namespace gpusched::bench {
namespace {

constexpr double kLoad = 0.5;
constexpr seconds kTarget{1};
constexpr milliseconds kLaunch{2};
// The requests have nothing to do with each other, so they need not wait in one line.
constexpr std::uint32_t kQueues = 32;
constexpr milliseconds kLeadIn{300};
constexpr std::size_t kDevices = 2;
constexpr std::array<const char*, kDevices> kFiles = {"azure_llm_2023_conv_first_half.csv",
                                                      "azure_llm_2023_code_first_half.csv"};
constexpr std::array<const char*, kDevices> kNames = {"conversation", "code"};
constexpr std::size_t kGeneratedRequests = 2'000;

Result<Trace> TraceFor(std::size_t device) {
  if (const auto folder = RequestTraceFolder()) return ReadTrace(*folder + "/" + kFiles[device]);
  return GeneratedTrace(kGeneratedRequests, device + 1);
}

// The first second after a swap is dropped, then requests count; after the last of them is due the
// load rests for one target, so that each is answered in time or not at all.
struct Plan {
  Timetable timetable;
  Duration due;  // requests are due for so long in every turn
};
Plan PlanFor(Length length) {
  const seconds counted = length == Length::kFull ? seconds(40) : seconds(15);
  Timetable timetable{.start = {}, .length = counted + kTarget};
  return {.timetable = timetable, .due = timetable.dropped + counted};
}

struct Job {
  std::string remark;
  double alone = 0;  // part met by first come first served
  std::unique_ptr<BesideUpdate> run;
};

Result<Job> Prepare(Stage& stage, std::size_t device, const Plan& plan, std::size_t turns) {
  const Result<Trace> trace = TraceFor(device);
  if (!trace.ok()) return trace.status();
  const Arrivals stretch = StretchOfLoad(trace->arrivals, 0, plan.due, kLoad);
  Job job{.remark = std::string(kNames[device]) + ": " + std::to_string(stretch.size()) +
                    " requests of " + trace->name +
                    (trace->remark.empty() ? "" : " (" + trace->remark + ")"),
          .alone = OnTimeAlone(stretch, kTarget, plan.timetable.dropped),
          .run = nullptr};
  Result<std::unique_ptr<BesideUpdate>> run = BesideUpdate::Start(
      {.endpoint = stage.daemon().endpoint(),
       .device = std::to_string(device),
       .requests = Repeated(stretch, plan.timetable.each(), static_cast<int>(turns)),
       .target = kTarget,
       .request_launch = kLaunch,
       .request_queues = kQueues},
      plan.timetable.start);
  if (!run.ok()) return run.status();
  job.run = *std::move(run);
  return job;
}

}  // namespace

Result<Measurement> MeasureRealTrace(Length length) {
  Result<std::unique_ptr<Stage>> stage =
      Stage::Raise({.flags = {"--devices=" + std::to_string(kDevices)}});
  if (!stage.ok()) return stage.status();
  // The promise is about the last one.
  const std::vector<PolicyChoice> policies = BuiltInPolicies();
  Plan plan = PlanFor(length);
  plan.timetable.start = std::chrono::steady_clock::now() + kLeadIn;
  std::vector<Job> jobs;
  std::vector<BesideUpdate*> runs;
  for (std::size_t device = 0; device < kDevices; ++device) {
    Result<Job> job = Prepare(**stage, device, plan, policies.size());
    if (!job.ok()) return job.status();
    jobs.push_back(*std::move(job));
    runs.push_back(jobs.back().run.get());
  }
  const auto windows = UnderEachPolicy((*stage)->admin(), runs, policies, plan.timetable, nullptr);
  if (!windows.ok()) return windows.status();

  Measurement measurement;
  FiguresTable table;
  for (std::size_t device = 0; device < kDevices; ++device) {
    for (std::size_t i = 0; i < policies.size(); ++i) {
      table.Add(policies[i].label + ", " + kNames[device], (*windows)[i][device]);
    }
    const WindowFigures& last = windows->back()[device];
    if (!last.requests->on_time || !last.update->rest_used) {
      return Status(StatusCode::kUnavailable, "NOTHING_DONE", "a service got nothing done");
    }
    const std::string name = kNames[device];
    measurement.figures.push_back(AtLeast(name + ": deadlines met, of alone's",
                                          100 * *last.requests->on_time, "%",
                                          100 * jobs[device].alone - 0.5));
    measurement.figures.push_back(
        AtLeast(name + ": update, of the rest", 100 * *last.update->rest_used, "%", 85));
    measurement.remark += jobs[device].remark + "\n";
  }
  measurement.remark += table.Text();
  return measurement;
}

}  // namespace gpusched::bench
