// Opens the services, starts their loads a moment later and swaps policies while they run.
#include "macro/act.h"

#include <chrono>
#include <cstdio>
#include <memory>

#include "macro/progress_line.h"

namespace gpusched::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// So long from the services being ready until the first request is due.
constexpr milliseconds kLeadIn{200};
// A load generator that was further behind says so.
constexpr double kBehindMs = 20;

}  // namespace

Result<BesideUpdate::Results> Play(admin::AdminClient& admin, const Act& act,
                                   const std::vector<PolicyChoice>& policies, FiguresTable& table) {
  Timetable timetable = act.timetable;
  BesideUpdateOptions options = act.options;
  options.requests = Repeated(act.turn, timetable.each(), static_cast<int>(policies.size()));
  const bool with_requests = !options.requests.empty();
  Result<std::unique_ptr<BesideUpdate>> job = BesideUpdate::Open(options);
  if (!job.ok()) return job.status();
  timetable.start = std::chrono::steady_clock::now() + kLeadIn;
  if (Status status = (*job)->Begin(timetable.start); !status.ok()) return status;

  ProgressLine line;
  const auto tick = [&](const PolicyChoice& policy, Duration into) {
    const BesideUpdate::Progress progress = (*job)->progress();
    std::string text = (act.label.empty() ? policy.label : act.label) + ": " +
                       std::to_string(into / seconds(1)) + " of " +
                       std::to_string(timetable.length / seconds(1)) + " s";
    if (with_requests) {
      text += ", " + std::to_string(progress.on_time) + " of " + std::to_string(progress.due) +
              " " + options.request_name + " on time so far";
    }
    if (options.update) {
      text += ", " + options.update_name + ": " + std::to_string(progress.update_jobs) + " jobs";
    }
    line.Show(text);
  };
  const auto windows = UnderEachPolicy(admin, {job->get()}, policies, timetable, tick);
  line.Done();
  if (!windows.ok()) return windows.status();
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const WindowFigures& figures = (*windows)[i].front();
    table.Add(act.label.empty() ? policies[i].label : act.label, figures);
    // A generator that could not keep up is part of the figures; say so rather than hide it.
    if (figures.behind_ms > kBehindMs) {
      std::printf("  (the load generator was up to %.0f ms behind; it counts as latency)\n",
                  figures.behind_ms);
    }
  }
  return (*job)->Finish();
}

void PrintLegend() {
  std::printf(
      "\non time: answered within the target, of all that were due; refused, cancelled, skipped\n"
      "and unfinished ones count as missed. p50 and p99 of what is due at an instant count from\n"
      "that instant. asked: the share of the device the policy owes the service (- where it\n"
      "promises none); got: what it was charged for. rest used: the kernel time of a service over\n"
      "the device time that the other left, so launch gaps, chunks and switches are what is\n"
      "missing to 100 %%.\n");
}

std::vector<PolicyChoice> LabelledPolicies() {
  std::vector<PolicyChoice> policies = BuiltInPolicies();
  policies[1].label = "weighted_share 70/30";
  return policies;
}

}  // namespace gpusched::bench
