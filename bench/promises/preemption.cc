// How long a short request waits beside endless long launches, against the same request alone.
#include <vector>

#include "promises/stage.h"
#include "promises/table.h"
#include "support/beside_update.h"
#include "support/percentile.h"

namespace gpusched::bench {
namespace {

constexpr milliseconds kPeriod{20}, kRequest{2}, kTarget{20};
constexpr milliseconds kLongLaunch{50}, kUncuttable{5};
// The device's setting, and a twentieth of the requests' target.
constexpr milliseconds kDefaultBound{1};
// With gap, switch and three standard deviations of the virtual device's noise.
constexpr microseconds kLongestUncuttable = kUncuttable * 115 / 100 + microseconds(28);
constexpr std::uint64_t kSeed = 7;
// So long until estimates are learned and both loads are under way.
constexpr milliseconds kSettle{300};
// Alone and beside take turns, so that both meet the same machine.
constexpr int kTurns = 4;

// What several turns of one setting showed.
struct Observed {
  std::vector<Measured> latencies;
  double rest_used = 0;  // by the best effort, percent of the turns together; zero without it

  double p99_ms() const { return Milliseconds(Percentile(latencies, 99).value); }
};

Status Play(Stage& stage, Duration length, std::uint64_t turn, BesideUpdateOptions options,
            Observed& observed) {
  options.endpoint = stage.daemon().endpoint();
  options.requests = EveryAtRandomPhase(kPeriod, kRequest, kSettle + length, kSeed + turn);
  options.target = kTarget;
  options.request_launch = kRequest;
  options.request_share = {.priority = 10};
  options.update_share = {};
  // Well over the longest stall of a busy host.
  options.update_outstanding = static_cast<int>(milliseconds(100) / options.update_launch) + 1;
  const SteadyTime start = std::chrono::steady_clock::now() + milliseconds(50);
  Result<std::unique_ptr<BesideUpdate>> job = BesideUpdate::Start(options, start);
  if (!job.ok()) return job.status();
  WaitUntil((start + kSettle).time_since_epoch());
  if (Status status = (*job)->BeginWindow(stage.admin()); !status.ok()) return status;
  // The last request is answered well within its target before the window ends.
  WaitUntil((start + kSettle + length + kTarget).time_since_epoch());
  const Result<WindowFigures> window = (*job)->EndWindow(stage.admin());
  if (!window.ok()) return window.status();
  if (options.update && !window->update->rest_used) {
    return Status(StatusCode::kUnavailable, "NOTHING_DONE", "the best effort got no launch done");
  }
  const std::vector<Measured>& latencies = window->requests->latencies;
  observed.latencies.insert(observed.latencies.end(), latencies.begin(), latencies.end());
  if (options.update) observed.rest_used += 100 * *window->update->rest_used / kTurns;
  return Status::Ok();
}

// One observation for each of `settings`, all on one daemon.
Result<std::vector<Observed>> PlayInTurns(Stage& stage, Duration length,
                                          const std::vector<BesideUpdateOptions>& settings) {
  std::vector<Observed> observed(settings.size());
  for (int turn = 0; turn < kTurns; ++turn) {
    for (std::size_t i = 0; i < settings.size(); ++i) {
      Status status =
          Play(stage, length / kTurns, static_cast<std::uint64_t>(turn), settings[i], observed[i]);
      if (!status.ok()) return status;
    }
  }
  return observed;
}

}  // namespace

Result<Measurement> MeasurePreemption(Length length) {
  const Duration each = length == Length::kFull ? seconds(60) : milliseconds(9'200);
  const BesideUpdateOptions alone{.update = false}, beside{.update_launch = kLongLaunch},
      uncuttable{.update_launch = kUncuttable, .update_cuttable = false};
  Measurement measurement;
  auto& figures = measurement.figures;
  {
    Result<std::unique_ptr<Stage>> stage =
        Stage::Raise({.flags = {"--policy=preemptive_priority"}});
    if (!stage.ok()) return stage.status();
    const auto at_default = PlayInTurns(**stage, each, {alone, beside, uncuttable});
    if (!at_default.ok()) return at_default.status();
    const double p99 = (*at_default)[0].p99_ms();
    figures.push_back(AtMost("default settings, p99", (*at_default)[1].p99_ms(), "ms",
                             p99 + Milliseconds(kDefaultBound) + kHostWakeUpsMs));
    figures.push_back(AtMost("beside uncuttable 5 ms, p99", (*at_default)[2].p99_ms(), "ms",
                             p99 + Milliseconds(kLongestUncuttable) + kHostWakeUpsMs));
    figures.push_back(
        AtLeast("default settings, best effort of the rest", (*at_default)[1].rest_used, "%", 90));
  }
  Result<std::unique_ptr<Stage>> stage =
      Stage::Raise({.flags = {"--policy=preemptive_priority", "--preemption-bound=0.5ms"}});
  if (!stage.ok()) return stage.status();
  const auto tight = PlayInTurns(**stage, each, {alone, beside});
  if (!tight.ok()) return tight.status();
  figures.push_back(AtMost("bound 0.5 ms, p99", (*tight)[1].p99_ms(), "ms",
                           1.25 * (*tight)[0].p99_ms() + kHostWakeUpsMs));
  figures.push_back(
      AtLeast("bound 0.5 ms, best effort of the rest", (*tight)[1].rest_used, "%", 85));
  return measurement;
}

}  // namespace gpusched::bench
