// How long a short request waits beside endless long launches, against the same request alone.
#include <utility>

#include "promises/stage.h"
#include "promises/table.h"
#include "support/beside_update.h"

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
constexpr milliseconds kSettle{500};

struct Observed {
  double p99_ms = 0;
  double rest_used = 0;  // by the best effort, percent; meaningless without it
};

Result<Observed> Play(Stage& stage, seconds length, BesideUpdateOptions options) {
  options.endpoint = stage.daemon().endpoint();
  options.requests = EveryAtRandomPhase(kPeriod, kRequest, kSettle + length, kSeed);
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
  return Observed{.p99_ms = Milliseconds(window->requests->p99.value),
                  .rest_used = options.update ? 100 * *window->update->rest_used : 0};
}

// Alone and beside the best effort, on one daemon.
struct Pair {
  Observed alone, beside;
};
Result<Pair> PlayBoth(Stage& stage, seconds length) {
  Result<Observed> alone = Play(stage, length, {.update = false});
  if (!alone.ok()) return alone.status();
  Result<Observed> beside = Play(stage, length, {.update_launch = kLongLaunch});
  if (!beside.ok()) return beside.status();
  return Pair{.alone = *alone, .beside = *beside};
}

}  // namespace

Result<Measurement> MeasurePreemption(Length length) {
  const seconds each = length == Length::kFull ? seconds(60) : seconds(10);
  Measurement measurement;
  auto& figures = measurement.figures;
  {
    Result<std::unique_ptr<Stage>> stage =
        Stage::Raise({.flags = {"--policy=preemptive_priority"}});
    if (!stage.ok()) return stage.status();
    const Result<Pair> at_default = PlayBoth(**stage, each);
    if (!at_default.ok()) return at_default.status();
    const Result<Observed> uncuttable =
        Play(**stage, each, {.update_launch = kUncuttable, .update_cuttable = false});
    if (!uncuttable.ok()) return uncuttable.status();
    const double alone = at_default->alone.p99_ms;
    figures.push_back(AtMost("default settings, p99", at_default->beside.p99_ms, "ms",
                             alone + Milliseconds(kDefaultBound) + kHostWakeUpsMs));
    figures.push_back(AtMost("beside uncuttable 5 ms, p99", uncuttable->p99_ms, "ms",
                             alone + Milliseconds(kLongestUncuttable) + kHostWakeUpsMs));
    figures.push_back(AtLeast("default settings, best effort of the rest",
                              at_default->beside.rest_used, "%", 90));
  }
  Result<std::unique_ptr<Stage>> stage =
      Stage::Raise({.flags = {"--policy=preemptive_priority", "--preemption-bound=0.5ms"}});
  if (!stage.ok()) return stage.status();
  const Result<Pair> tight = PlayBoth(**stage, each);
  if (!tight.ok()) return tight.status();
  figures.push_back(AtMost("bound 0.5 ms, p99", tight->beside.p99_ms, "ms",
                           1.25 * tight->alone.p99_ms + kHostWakeUpsMs));
  figures.push_back(
      AtLeast("bound 0.5 ms, best effort of the rest", tight->beside.rest_used, "%", 85));
  return measurement;
}

}  // namespace gpusched::bench
