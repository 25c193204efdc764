// Eight low sessions under a high one that never rests: how long they wait, how little they take.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "promises/stage.h"
#include "promises/table.h"

namespace gpusched::bench {
namespace {

constexpr int kLow = 8;
constexpr seconds kWindow{1};
constexpr milliseconds kRescue{1};  // one slice: the preemption bound
constexpr double kBackgroundShare = 0.05;
constexpr microseconds kLaunch{1'000};

struct Observed {
  nanoseconds longest_wait{0};
  double rescues_ms = 0;  // in any second
};

// Waiting is the time in which the device did nothing for a session that had work; the run's ends
// count.
nanoseconds LongestWait(const std::vector<admin::Slice>& slices, const Worker& worker,
                        nanoseconds from, nanoseconds to) {
  nanoseconds longest{0}, served = from;
  for (const admin::Slice& slice : slices) {
    if (slice.session != worker.id() || slice.ended < from || slice.started > to) continue;
    longest = std::max(longest, slice.started - served);
    served = std::max(served, slice.ended);
  }
  return std::max(longest, to - served);
}

Result<Observed> Play(Stage& stage, seconds length) {
  std::vector<std::unique_ptr<Worker>> low;
  for (int i = 0; i < kLow; ++i) {
    Result<std::unique_ptr<Worker>> worker = stage.Open("low", {});
    if (!worker.ok()) return worker.status();
    low.push_back(*std::move(worker));
  }
  Result<std::unique_ptr<Worker>> high = stage.Open("high", {.priority = 10});
  if (!high.ok()) return high.status();
  Result<std::unique_ptr<LedgerRecorder>> recorder = LedgerRecorder::Start(stage.admin());
  if (!recorder.ok()) return recorder.status();
  if (Status status = (*high)->KeepBusy({.each = kLaunch}); !status.ok()) return status;
  for (const std::unique_ptr<Worker>& worker : low) {
    if (Status status = worker->KeepBusy({.each = kLaunch}); !status.ok()) return status;
  }
  const nanoseconds from = DaemonNow(), to = from + length;
  WaitUntil(to);
  if (Result<Ledger> ledger = LedgerUpTo(**recorder, to); !ledger.ok()) return ledger.status();

  Observed observed;
  const std::vector<admin::Slice> slices = (*recorder)->Slices();
  for (const std::unique_ptr<Worker>& worker : low) {
    observed.longest_wait = std::max(observed.longest_wait, LongestWait(slices, *worker, from, to));
  }
  // All rescues as if they were one session's.
  Ledger rescues;
  for (const admin::Slice& slice : slices) {
    if (!slice.rescue) continue;
    rescues.Add(
        {.session = 1, .started = slice.started, .ended = slice.ended, .charged = slice.charged});
  }
  for (const nanoseconds start : rescues.Starts(from, to - kWindow)) {
    observed.rescues_ms =
        std::max(observed.rescues_ms, Milliseconds(rescues.Charged(start, start + kWindow)));
  }
  return observed;
}

// As policies/preemptive_priority.h declares it, for kLow sessions that wait together.
Duration DeclaredWait(Duration starvation_bound) {
  const Duration rescues(static_cast<std::int64_t>(
      static_cast<double>(Duration(kLow * kRescue).count()) / kBackgroundShare));
  return starvation_bound + rescues + kRescue;
}

}  // namespace

Result<Measurement> MeasureStarvation(Length length) {
  const seconds each = length == Length::kFull ? seconds(60) : seconds(12);
  struct Setting {
    std::string text;
    Duration bound;
  };
  // With 0.1 s the sessions ask for more rescues than the background share pays for.
  const std::vector<Setting> settings = {{"1s", seconds(1)}, {"100ms", milliseconds(100)}};
  Result<std::unique_ptr<Stage>> stage = Stage::Raise();
  if (!stage.ok()) return stage.status();
  Measurement measurement;
  for (const Setting& setting : settings) {
    if (Status status =
            (*stage)->SetPolicy("preemptive_priority", {{"starvation_bound", setting.text}});
        !status.ok()) {
      return status;
    }
    const Result<Observed> observed = Play(**stage, each);
    if (!observed.ok()) return observed.status();
    const std::string name = "starvation_bound " + setting.text + ": ";
    measurement.figures.push_back(
        AtMost(name + "longest wait", Milliseconds(observed->longest_wait), "ms",
               Milliseconds(DeclaredWait(setting.bound)) + kHostWakeUpsMs));
    measurement.figures.push_back(AtMost(name + "rescues in any second", observed->rescues_ms, "ms",
                                         1'000 * kBackgroundShare + Milliseconds(kRescue)));
  }
  return measurement;
}

}  // namespace gpusched::bench
