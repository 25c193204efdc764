// How fast virtual time passes.
#include <time.h>

#include <algorithm>
#include <chrono>

#include "promises/proof.h"
#include "promises/table.h"

namespace gpusched::bench {
namespace {

// Cuttable work of several shapes, switches and preemptions: what most scenarios are made of.
constexpr const char* kBusy = R"(
warm_up: 100ms
drain: 0
sessions:
  - {name: a, share: {weight: 300}, source: {kind: closed_loop, outstanding: 2, work: 5ms}}
  - {name: b, share: {weight: 100}, source: {kind: closed_loop, outstanding: 2, work: 3ms, launches: 30}}
  - {name: c, share: {weight: 50, priority: 5}, target: 50ms,
     source: {kind: poisson, rate: 50, work: 2ms, launches: 10}}
)";

// Processor time of this thread: the simulator waits for nothing, so on a machine of its own that
// is the time that passes.
double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}
double SecondsOf(double begin) { return ProcessorSeconds() - begin; }

// Commands a second, the best of a few: a busy host only ever makes it slower.
Result<double> Speed(const sim::Scenario& scenario, bool checked) {
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    const double begin = ProcessorSeconds();
    const Result<sim::RunFigures> run = checked ? RunChecked(scenario, "weighted_share", 1)
                                                : RunUnder(scenario, "weighted_share", 1);
    if (!run.ok()) return run.status();
    best = std::max(best, static_cast<double>(run->commands) / SecondsOf(begin));
  }
  return best;
}

}  // namespace

Result<Measurement> MeasureSimulatorSpeed(Length length) {
  Result<sim::Scenario> busy = ScenarioOf("busy", kBusy);
  if (!busy.ok()) return busy.status();
  busy->duration = std::chrono::seconds(length == Length::kFull ? 600 : 200);
  const Result<double> plain = Speed(*busy, false);
  if (!plain.ok()) return plain.status();
  busy->duration /= 4;
  const Result<double> checked = Speed(*busy, true);
  if (!checked.ok()) return checked.status();
  const double begin = ProcessorSeconds();
  if (Result<double> requests = MillionRequests(); !requests.ok()) return requests.status();
  Measurement measurement;
  measurement.figures = {AtLeast("hashed", *plain / 1e6, "M commands/s", 1),
                         AtLeast("hashed and checked", *checked / 1e6, "M commands/s", 0.3),
                         AtMost("a million requests of sla_mix", SecondsOf(begin), "s", 30)};
  return measurement;
}

}  // namespace gpusched::bench
