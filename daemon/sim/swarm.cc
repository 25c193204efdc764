// Makes a history out of a seed, runs it under the checker, and tells what went wrong.
#include "sim/swarm.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <unistd.h>

#include "catalog.h"
#include "core/priority_class.h"
#include "sim/checker.h"
#include "sim/crowd.h"
#include "sim/mutants.h"
#include "sim/recent.h"
#include "sim/unfair_policies.h"

namespace gpusched::sim {
namespace {

// Of one kind: a built-in, or one of those that no operator would choose.
std::unique_ptr<Policy> MakePolicy(const std::string& kind, const std::string& parameters,
                                   std::uint64_t seed) {
  if (kind == "nonsense") return std::make_unique<Nonsense>(seed);
  if (kind == "hesitant") return std::make_unique<Hesitant>(seed);
  return BuildPolicy(kind, std::string_view(parameters)).policy;
}

std::string Canonical(const std::string& kind, const std::string& parameters) {
  const BuiltPolicy built = BuildPolicy(kind, std::string_view(parameters));
  return built.ok() ? built.canonical : parameters;
}

SimulationOptions DrawOptions(const Hazards& hazards, Random& random) {
  SimulationOptions options;
  options.seed = random.Next();
  if (hazards.reordering && !random.Once(2)) {
    options.traits.priority_classes = options.seed % 3 == 0 ? 3 : core::kEachPriorityItsOwn;
  }
  options.traits.can_interrupt = hazards.interruptible;
  if (random.Once(3)) options.traits.preemption_bound = std::chrono::microseconds(300);
  if (random.Once(4)) {
    options.costs.launch_gap = options.costs.chunk = options.costs.session_switch = Duration(0);
    options.costs.noise_ppb = options.costs.outlier_ppb = 0;
  }
  if (hazards.late_news) options.lateness = Duration(random.Between(1'000, 200'000));
  if (hazards.tight) {
    options.limits.jobs_per_session = static_cast<std::uint32_t>(random.Between(1, 12));
    options.limits.operations_per_job = 4;
    options.limits.commands_in_flight = static_cast<std::uint32_t>(random.Between(1, 4));
    options.limits.estimates_per_session = static_cast<std::uint32_t>(random.Between(1, 4));
  }
  return options;
}

// Takes note of what came before the first violation.
class Witnesses final : public Observer {
 public:
  Witnesses(const Checker& checker, const Recent& recent) : checker_(checker), recent_(recent) {}
  void AfterStep(Time, const core::Scheduler&) override {
    if (lines_.empty() && !checker_.violations().empty()) lines_ = recent_.Lines();
  }
  std::vector<std::string> lines() const { return lines_.empty() ? recent_.Lines() : lines_; }

 private:
  const Checker& checker_;
  const Recent& recent_;
  std::vector<std::string> lines_;
};

}  // namespace

bool SwarmOutcome::Broke(Rule rule) const {
  return std::any_of(violations.begin(), violations.end(),
                     [rule](const Violation& violation) { return violation.rule == rule; });
}

SwarmOutcome RunSeed(std::uint64_t seed, const Mutant* mutant) {
  Random random(seed);
  const Hazards hazards = Hazards::Draw(random);
  SimulationOptions options = DrawOptions(hazards, random);
  const auto [kind, parameters] = Crowd::DrawPolicy(hazards, random);
  options.policy = {
      .kind = kind, .parameters = Canonical(kind, parameters), .generation = 1, .source = "swarm"};
  Witness witness;
  const auto make = [&](const std::string& wanted, const std::string& with) {
    std::unique_ptr<Policy> policy = MakePolicy(wanted, with, random.Next());
    if (mutant != nullptr && mutant->policy != nullptr) {
      policy = mutant->policy(wanted, std::move(policy));
    }
    return witness.Wrap(std::move(policy));
  };
  std::unique_ptr<Policy> policy = make(kind, parameters);

  CheckerOptions judged{.limits = options.limits,
                        .priority_classes = options.traits.priority_classes,
                        .preemption_bound = options.traits.preemption_bound,
                        .shortest_useful_chunk = options.traits.shortest_useful_chunk,
                        .policy = options.policy,
                        .share_rule = policy->share_rule(),
                        .witness = &witness};
  Checker checker(judged);
  Recent recent;
  Witnesses before_the_fault(checker, recent);
  std::unique_ptr<Shim> shim;
  if (mutant != nullptr && mutant->core != nullptr) {
    shim = mutant->core({options.limits, options.traits, options.policy, std::move(policy)});
    policy = make(kind, parameters);  // for the core that stands aside
  }

  SwarmOutcome outcome;
  outcome.seed = seed;
  outcome.drawn = kind +
                  (options.traits.priority_classes > 1
                       ? ", " + std::to_string(options.traits.priority_classes) + " classes; "
                       : "; ") +
                  hazards.Text();
  {
    Simulation simulation(options, std::move(policy), std::move(shim));
    simulation.AddObserver(&recent);
    simulation.AddObserver(&checker);
    simulation.AddObserver(&before_the_fault);
    Crowd crowd(hazards, random.Fork(), simulation,
                [&](const auto& wanted, const auto& with) { return make(wanted, with); });
    crowd.Begin();
    // A broken core may never come to an end.
    constexpr std::uint64_t kMostSteps = 400'000;
    constexpr Duration kMostAfter = std::chrono::seconds(60);
    const auto run = [&](Time end, const auto& until) {
      while (!until() && simulation.steps() < kMostSteps && simulation.Step(end)) {}
    };
    run(kNever - Duration(1), [&] { return crowd.done(); });
    crowd.Settle();
    run(simulation.now() + kMostAfter, [&] { return simulation.jobs_outstanding() == 0; });
    crowd.CloseAll();
    run(simulation.now() + kMostAfter, [&] { return simulation.jobs_outstanding() == 0; });
    if (simulation.steps() < kMostSteps) checker.ExpectNothingLeft(simulation.now());
    outcome.hash = simulation.hash();
    outcome.steps = simulation.steps();
    outcome.commands = simulation.commands();
  }
  outcome.violations = checker.violations();
  if (!outcome.silent()) outcome.records = before_the_fault.lines();
  return outcome;
}

namespace {

std::uint64_t running_seed = 0;

// The core dies of what only a fault of its own can break; the seed is all one needs then.
void TellSeed(int signal) {
  char text[96];
  const int length =
      std::snprintf(text, sizeof text, "gpusched-sim: seed %llu ended by signal %d\n",
                    static_cast<unsigned long long>(running_seed), signal);
  [[maybe_unused]] const auto written =
      ::write(STDERR_FILENO, text, static_cast<std::size_t>(length));
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void TellFailure(const SwarmOutcome& outcome) {
  std::printf("seed %llu (%s) broke:\n", static_cast<unsigned long long>(outcome.seed),
              outcome.drawn.c_str());
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < std::min(kShown, outcome.violations.size()); ++i) {
    std::printf("  %s\n", outcome.violations[i].Text().c_str());
  }
  if (outcome.violations.size() > kShown) {
    std::printf("  and %zu more\n", outcome.violations.size() - kShown);
  }
  std::printf("the last records before it (session, number, more):\n");
  for (const std::string& line : outcome.records) std::printf("  %s\n", line.c_str());
  std::printf("repeat it with: gpusched-sim swarm --seed %llu\n",
              static_cast<unsigned long long>(outcome.seed));
}

}  // namespace

int RunSwarm(const SwarmOptions& options) {
  ::signal(SIGABRT, TellSeed);
  ::signal(SIGSEGV, TellSeed);
  std::uint64_t failures = 0, commands = 0;
  const bool bar = options.seeds > 1 && ::isatty(STDERR_FILENO) == 1;
  for (std::uint64_t i = 0; i < options.seeds; ++i) {
    running_seed = options.seed + i;
    const SwarmOutcome outcome = RunSeed(running_seed);
    commands += outcome.commands;
    if (options.verbose) {
      std::printf("seed %llu: hash %016llx, %llu steps, %llu commands (%s)\n",
                  static_cast<unsigned long long>(outcome.seed),
                  static_cast<unsigned long long>(outcome.hash),
                  static_cast<unsigned long long>(outcome.steps),
                  static_cast<unsigned long long>(outcome.commands), outcome.drawn.c_str());
    }
    if (!outcome.silent()) {
      ++failures;
      TellFailure(outcome);
    }
    if (bar) {
      std::fprintf(stderr, "\r%llu of %llu seeds, %llu broke a rule",
                   static_cast<unsigned long long>(i + 1),
                   static_cast<unsigned long long>(options.seeds),
                   static_cast<unsigned long long>(failures));
    }
  }
  if (bar) std::fprintf(stderr, "\n");
  std::printf("%llu seeds, %llu commands, %llu seeds broke a rule\n",
              static_cast<unsigned long long>(options.seeds),
              static_cast<unsigned long long>(commands), static_cast<unsigned long long>(failures));
  return failures == 0 ? 0 : 1;
}

}  // namespace gpusched::sim
