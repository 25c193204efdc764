// Upper limits while the policy changes under the sessions that strain against them.
#include <algorithm>
#include <vector>

#include "promises/stage.h"
#include "promises/table.h"
#include "promises/windows.h"
#include "support/beside_update.h"

namespace gpusched::bench {
namespace {

constexpr seconds kWindow{1};
constexpr double kMax = 0.2, kStrictMin = 0.3;
constexpr int kSwaps = 200;
constexpr microseconds kLaunch{1'000};

// One session at its max, one that would take everything, one whose strict min must stay free.
struct Cast {
  std::unique_ptr<Worker> capped, greedy, strict;
};

Result<Cast> OpenCast(Stage& stage) {
  // Priority and weight ask for far more than max allows.
  Result<std::unique_ptr<Worker>> capped =
      stage.Open("capped", {.weight = 1'000, .max = kMax, .priority = 10});
  if (!capped.ok()) return capped.status();
  Result<std::unique_ptr<Worker>> greedy = stage.Open("greedy", {});
  if (!greedy.ok()) return greedy.status();
  Result<std::unique_ptr<Worker>> strict =
      stage.Open("strict", {.min = kStrictMin, .strict = true});
  if (!strict.ok()) return strict.status();
  return Cast{
      .capped = *std::move(capped), .greedy = *std::move(greedy), .strict = *std::move(strict)};
}

// By how many points of any second they passed what they may have; not above zero if never.
struct Passed {
  double max = -100, others = -100;
};

Passed Watch(const Ledger& ledger, const Cast& cast, nanoseconds from, nanoseconds to) {
  Passed passed;
  ForEachWindow(ledger, from, to, kWindow, [&](nanoseconds begin, nanoseconds end) {
    const double capped = ledger.Share(cast.capped->id(), begin, end);
    const double greedy = ledger.Share(cast.greedy->id(), begin, end);
    passed.max = std::max(passed.max, 100 * (capped - kMax));
    passed.others = std::max(passed.others, 100 * (capped + greedy - (1 - kStrictMin)));
  });
  return passed;
}

}  // namespace

Result<Measurement> MeasureCapsSurvive(Length length) {
  const seconds each = length == Length::kFull ? seconds(20) : seconds(4);
  const milliseconds between_swaps = length == Length::kFull ? milliseconds(500) : milliseconds(80);
  Result<std::unique_ptr<Stage>> stage = Stage::Raise();
  if (!stage.ok()) return stage.status();
  Result<Cast> cast = OpenCast(**stage);
  if (!cast.ok()) return cast.status();
  Result<std::unique_ptr<LedgerRecorder>> recorder = LedgerRecorder::Start((*stage)->admin());
  if (!recorder.ok()) return recorder.status();
  for (Worker* worker : {cast->capped.get(), cast->greedy.get()}) {
    if (Status status = worker->KeepBusy({.each = kLaunch}); !status.ok()) return status;
  }

  const std::vector<PolicyChoice> policies = BuiltInPolicies();
  struct Stretch {
    std::string what;
    nanoseconds from, to;
  };
  std::vector<Stretch> stretches;
  for (const PolicyChoice& policy : policies) {
    if (Status status = (*stage)->SetPolicy(policy.kind); !status.ok()) return status;
    const nanoseconds from = DaemonNow();
    stretches.push_back({.what = policy.label, .from = from, .to = from + each});
    WaitUntil(from + each);
  }
  const nanoseconds from = DaemonNow();
  for (int swap = 0; swap < kSwaps; ++swap) {
    const PolicyChoice& policy = policies[static_cast<std::size_t>(swap) % policies.size()];
    if (Status status = (*stage)->SetPolicy(policy.kind); !status.ok()) return status;
    WaitUntil(from + (swap + 1) * nanoseconds(between_swaps));
  }
  stretches.push_back({.what = "200 swaps", .from = from, .to = DaemonNow()});

  const Result<Ledger> ledger = LedgerUpTo(**recorder, stretches.back().to);
  if (!ledger.ok()) return ledger.status();
  Measurement measurement;
  for (const Stretch& stretch : stretches) {
    const Passed passed = Watch(*ledger, *cast, stretch.from, stretch.to);
    measurement.figures.push_back(
        AtMost(stretch.what + ": above max 20 %, worst second", passed.max, "points", 1));
    measurement.figures.push_back(AtMost(stretch.what + ": above what strict leaves, worst second",
                                         passed.others, "points", 1));
  }
  return measurement;
}

}  // namespace gpusched::bench
