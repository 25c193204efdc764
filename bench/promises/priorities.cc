// Inversions and rescues in random histories, by the checker, and jobs that are late anyway beside
// others that can still be on time.
#include <string>

#include "catalog.h"
#include "promises/table.h"
#include "sim/simulation.h"
#include "sim/swarm.h"

namespace gpusched::bench {
namespace {

using std::chrono::milliseconds;

// Submits a job of one kernel every period, and counts those that were done in time.
class Periodic final : public sim::Client {
 public:
  Periodic(Duration work, Duration period, Duration target, std::uint64_t kernel)
      : recipe_(std::make_shared<sim::Recipe>(sim::Recipe{sim::LaunchOf(work, 100, kernel)})),
        period_(period),
        target_(target) {}

  void Begin(sim::Simulation& simulation) {
    session_ = simulation.Open({.latency_target = target_});
    simulation.WakeAt(simulation.now() + period_, this);
  }
  void Woken(sim::Simulation& simulation) override {
    ++submitted_;
    simulation.Submit({.session = session_,
                       .recipe = recipe_,
                       .deadline = simulation.now() + target_,
                       .client = this});
    simulation.WakeAt(simulation.now() + period_, this);
  }
  void JobEnded(sim::Simulation&, const core::Job& job, core::JobOutcome outcome,
                const Status&) override {
    in_time_ += outcome == core::JobOutcome::kDone && job.last_end <= job.deadline;
  }
  double PercentInTime() const { return 100.0 * in_time_ / submitted_; }

 private:
  const std::shared_ptr<const sim::Recipe> recipe_;
  const Duration period_, target_;
  SessionId session_;
  double submitted_ = 0, in_time_ = 0;
};

// One session asks for more than there is, so that all its jobs come to be late; another of the
// same priority for a fifth of the device.
double InTimeBesideLate(std::chrono::seconds length) {
  sim::SimulationOptions options;
  options.policy.kind = "preemptive_priority";
  options.costs.outlier_ppb = 0;
  Periodic late(milliseconds(15), milliseconds(10), milliseconds(30), 1);
  Periodic careful(milliseconds(2), milliseconds(10), milliseconds(20), 2);
  sim::Simulation simulation(
      options, BuildPolicy("preemptive_priority", std::string_view("background_share=0")).policy);
  late.Begin(simulation);
  careful.Begin(simulation);
  simulation.RunUntil(sim::Simulation::kStart + length);
  return careful.PercentInTime();
}

}  // namespace

Result<Measurement> MeasurePriorities(Length length) {
  const std::uint64_t seeds = length == Length::kFull ? 10'000 : 600;
  double inversions = 0, waits = 0, rescues = 0;
  std::uint64_t commands = 0;
  Measurement measurement;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const sim::SwarmOutcome outcome = sim::RunSeed(seed);
    commands += outcome.commands;
    const bool inverted = outcome.Broke(sim::Rule::kNoInversion);
    const bool waited = outcome.Broke(sim::Rule::kPreemptionBound);
    const bool rescued = outcome.Broke(sim::Rule::kRescuesBounded);
    inversions += inverted;
    waits += waited;
    rescues += rescued;
    if (inverted || waited || rescued) {
      measurement.remark += "see gpusched-sim swarm --seed " + std::to_string(seed) + "\n";
    }
  }
  measurement.figures = {
      AtMost("seeds in which a lower session started before a higher", inversions, "", 0),
      AtMost("seeds with a wait beyond bound, rescue and overruns", waits, "", 0),
      AtMost("seeds with rescues beyond their share of a second", rescues, "", 0),
      AtLeast("in time beside jobs that are late anyway",
              InTimeBesideLate(std::chrono::seconds(length == Length::kFull ? 60 : 10)), "%",
              99.5)};
  measurement.remark += std::to_string(seeds) + " seeds, " + std::to_string(commands) +
                        " commands under every policy and fault\n";
  return measurement;
}

}  // namespace gpusched::bench
