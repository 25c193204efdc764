// The window is cut out by reading the accounts at its two ends.
#include "sim/run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "catalog.h"
#include "gpusched/reasons.h"

namespace gpusched::sim {
namespace {

// How often progress is told, in parts of the run.
constexpr int kProgressSteps = 1'000;

struct Reading {
  std::map<std::uint64_t, core::SessionStatus> sessions;  // by serial
  std::vector<Duration> kernel;
  core::DeviceStatus device;
};

Reading Read(const Simulation& sim) {
  Reading reading;
  for (core::SessionStatus& status : sim.scheduler().Sessions(sim.now())) {
    reading.sessions.emplace(status.session.serial, std::move(status));
  }
  reading.kernel = sim.device().kernel_times();
  reading.device = sim.scheduler().device();
  return reading;
}

void RunWithProgress(Simulation& sim, Time from, Time to, Time whole_end,
                     const std::function<void(int)>& progress) {
  if (!progress) {
    sim.RunUntil(to);
    return;
  }
  const Duration step = std::max<Duration>((to - from) / kProgressSteps, Duration(1));
  for (Time t = from; t < to;) {
    t = std::min(After(t, step), to);
    sim.RunUntil(t);
    progress(static_cast<int>(
        (t - Simulation::kStart) /
        std::max<Duration>((whole_end - Simulation::kStart) / 1'000, Duration(1))));
  }
}

Duration KernelOf(const Reading& reading, std::uint64_t serial) {
  return serial < reading.kernel.size() ? reading.kernel[serial] : Duration(0);
}

SessionFigures FiguresOf(const SessionSpec& spec, const SessionLoad& load, const Reading& before,
                         const Reading& after) {
  SessionFigures figures;
  figures.name = spec.name;
  figures.share = spec.share;
  figures.outcomes = load.outcomes();
  const std::uint64_t serial = load.session().serial;
  const auto first = before.sessions.find(serial), last = after.sessions.find(serial);
  figures.charged = last->second.account.charged - first->second.account.charged;
  figures.asked = last->second.asked - first->second.asked;
  figures.busy = last->second.busy - first->second.busy;
  figures.kernel = KernelOf(after, serial) - KernelOf(before, serial);
  figures.promised = after.device.promises_shares;
  figures.longest_uncuttable = last->second.longest_uncuttable;
  figures.bound_in_force = last->second.bound_in_force;
  return figures;
}

}  // namespace

Result<PolicyChoice> PolicyChoice::Parse(const std::string& text) {
  PolicyChoice choice;
  const std::size_t comma = text.find(',');
  choice.kind = text.substr(0, comma);
  if (comma != std::string::npos) choice.parameters = text.substr(comma + 1);
  const BuiltPolicy built = BuildPolicy(choice.kind, std::string_view(choice.parameters));
  if (!built.ok()) {
    std::string wrong;
    for (const FieldError& error : built.errors) {
      wrong += (wrong.empty() ? "" : "; ") + (error.field.empty() ? "" : error.field + ": ") +
               error.message;
    }
    return Status(StatusCode::kInvalidArgument, reason::kUnknownPolicy,
                  "policy '" + text + "': " + wrong);
  }
  choice.parameters = built.canonical;
  return choice;
}

Result<std::unique_ptr<Policy>> PolicyChoice::Make() const {
  BuiltPolicy built = BuildPolicy(kind, std::string_view(parameters));
  if (!built.ok()) return Parse(Text()).status();
  return std::move(built.policy);
}

double SessionFigures::PartMet() const {
  if (outcomes.submitted == 0) return 1;
  return static_cast<double>(outcomes.met) / static_cast<double>(outcomes.submitted);
}

Result<RunFigures> Run(const Scenario& scenario, const PolicyChoice& choice,
                       const RunOptions& options) {
  Result<std::unique_ptr<Policy>> policy = choice.Make();
  if (!policy.ok()) return policy.status();
  SimulationOptions simulated;
  simulated.costs = scenario.costs;
  simulated.limits = scenario.limits;
  simulated.traits = scenario.traits;
  simulated.policy.kind = choice.kind;
  simulated.policy.parameters = choice.parameters;
  simulated.seed = options.seed;
  const Time start = Simulation::kStart;
  const Time count_from = After(start, scenario.warm_up);
  const Time until = After(start, scenario.duration), end = After(until, scenario.drain);
  Random seeds(options.seed);
  std::vector<std::unique_ptr<SessionLoad>> loads;
  Simulation sim(simulated, *std::move(policy));
  for (Observer* observer : options.observers) sim.AddObserver(observer);
  for (const SessionSpec& spec : scenario.sessions) {
    loads.push_back(SessionLoad::Start(sim, spec, seeds.Next(), count_from, until));
  }
  RunWithProgress(sim, start, count_from, end, options.progress);
  const Reading before = Read(sim);
  RunWithProgress(sim, count_from, until, end, options.progress);
  const Reading after = Read(sim);
  while (sim.jobs_outstanding() > 0 && sim.Step(end)) {}
  if (options.progress) options.progress(kProgressSteps);

  RunFigures figures;
  figures.scenario = scenario.name;
  figures.policy = choice.Text();
  figures.seed = options.seed;
  figures.window = until - count_from;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    if (!loads[i]->status().ok()) return loads[i]->status();
    figures.sessions.push_back(FiguresOf(scenario.sessions[i], *loads[i], before, after));
  }
  figures.device_charged = after.device.charged - before.device.charged;
  figures.device_busy = after.device.busy - before.device.busy;
  figures.commands = sim.commands();
  figures.steps = sim.steps();
  const core::DeviceStatus device = sim.scheduler().device();
  figures.slices = device.slices;
  figures.preemptions = device.preemptions;
  figures.rescues = device.rescues;
  figures.ejections = device.ejections;
  figures.hash = sim.hash();
  figures.remarks = scenario.remarks;
  return figures;
}

Duration Percentile(std::vector<Duration> values, int tenths) {
  if (values.empty()) return Duration(0);
  const std::size_t rank =
      (values.size() * static_cast<std::size_t>(tenths) + 999) / 1'000;  // 1-based
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace gpusched::sim
