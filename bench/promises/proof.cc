// Virtual time needs no daemon: the same scheduler and policies run inside this program.
#include "promises/proof.h"

#include <algorithm>
#include <cstdio>

#include "sim/checker.h"

namespace gpusched::bench {

Result<sim::Scenario> ScenarioOf(const std::string& name, const std::string& text) {
  Result<sim::Scenario> scenario = sim::ParseScenario(text, name, ".");
  if (scenario.ok()) scenario->name = name;
  return scenario;
}

Result<sim::RunFigures> RunUnder(const sim::Scenario& scenario, const std::string& policy,
                                 std::uint64_t seed, const std::vector<sim::Observer*>& observers) {
  const Result<sim::PolicyChoice> choice = sim::PolicyChoice::Parse(policy);
  if (!choice.ok()) return choice.status();
  sim::RunOptions options;
  options.seed = seed;
  options.observers = observers;
  return sim::Run(scenario, *choice, options);
}

Result<sim::RunFigures> RunChecked(const sim::Scenario& scenario, const std::string& policy,
                                   std::uint64_t seed) {
  const Result<sim::PolicyChoice> choice = sim::PolicyChoice::Parse(policy);
  if (!choice.ok()) return choice.status();
  const Result<std::unique_ptr<Policy>> made = choice->Make();
  if (!made.ok()) return made.status();
  sim::CheckerOptions options;
  options.limits = scenario.limits;
  options.priority_classes = scenario.traits.priority_classes;
  options.preemption_bound = scenario.traits.preemption_bound;
  options.shortest_useful_chunk = scenario.traits.shortest_useful_chunk;
  options.policy.kind = choice->kind;
  options.policy.parameters = choice->parameters;
  options.policy.generation = 1;
  options.share_rule = (*made)->share_rule();
  sim::Checker checker(options);
  Result<sim::RunFigures> run = RunUnder(scenario, policy, seed, {&checker});
  if (!run.ok() || checker.violations().empty()) return run;
  const sim::Violation& first = checker.violations().front();
  return Status(
      StatusCode::kInternal, "RULE_BROKEN",
      scenario.name + " under " + policy + ", seed " + std::to_string(seed) + ": " + first.Text());
}

const sim::SessionFigures& Of(const sim::RunFigures& run, const std::string& name) {
  return *std::find_if(run.sessions.begin(), run.sessions.end(),
                       [&](const sim::SessionFigures& session) { return session.name == name; });
}

double PartOfTheRest(const sim::RunFigures& run, const std::string& name) {
  Duration rest = run.window;
  for (const sim::SessionFigures& session : run.sessions) {
    if (session.name != name) rest -= session.charged;
  }
  const Duration kernel = Of(run, name).kernel;
  return static_cast<double>(kernel.count()) /
         static_cast<double>(std::max(rest, Duration(1)).count());
}

std::string Rounded(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

}  // namespace gpusched::bench
