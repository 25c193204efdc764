// gpusched-sim: runs scenarios in virtual time from the command line.
#include <CLI/CLI.hpp>
#include <charconv>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <system_error>

#include "catalog.h"
#include "gpusched/units.h"
#include "sim/picture.h"
#include "sim/progress_bar.h"
#include "sim/report.h"
#include "sim/run.h"
#include "sim/scenario.h"
#include "sim/swarm.h"
#include "sim/timeline_file.h"

namespace gpusched::sim {
namespace {

// Bad input, as against a fault of ours.
constexpr int kBadInput = 2;

struct Arguments {
  std::string scenario = "recommendation";
  std::vector<std::string> policies;
  std::uint64_t seed = 1;
  std::string duration;  // "" leaves the scenario's
  bool json = false, quiet = false;
  std::string trace_path, svg_path;
  std::string parameter = "load", values = "0.5,0.7,0.9,1.0";
};

int Refuse(const Status& status) {
  std::cerr << status.message() << "\n";
  return kBadInput;
}

Result<Scenario> Load(const Arguments& arguments) {
  Result<Scenario> scenario = LoadScenario(arguments.scenario);
  if (!scenario.ok() || arguments.duration.empty()) return scenario;
  const auto duration = ParseDuration(arguments.duration);
  if (!duration || *duration <= scenario->warm_up) {
    return Status(StatusCode::kInvalidArgument, "BAD_CONFIGURATION",
                  "--duration " + arguments.duration + ": a time above the scenario's warm_up of " +
                      FormatDuration(scenario->warm_up) + " is needed, such as 10s");
  }
  scenario->duration = *duration;
  return scenario;
}

Result<std::vector<PolicyChoice>> Policies(const Arguments& arguments) {
  std::vector<PolicyChoice> choices;
  for (const std::string& text : arguments.policies) {
    Result<PolicyChoice> choice = PolicyChoice::Parse(text);
    if (!choice.ok()) return choice.status();
    choices.push_back(*std::move(choice));
  }
  return choices;
}

// One run after the other; the bar is theirs together.
Result<std::vector<RunFigures>> RunAll(const std::vector<std::pair<Scenario, PolicyChoice>>& runs,
                                       const Arguments& arguments,
                                       const std::vector<Observer*>& observers = {}) {
  ProgressBar bar(!arguments.quiet);
  std::vector<RunFigures> figures;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    RunOptions options;
    options.seed = arguments.seed;
    options.observers = observers;
    options.progress = [&, i](int per_mille) {
      bar.Show((static_cast<int>(i) * 1'000 + per_mille) / static_cast<int>(runs.size()));
    };
    Result<RunFigures> run = Run(runs[i].first, runs[i].second, options);
    if (!run.ok()) return run.status();
    figures.push_back(*std::move(run));
  }
  return figures;
}

std::optional<Status> Write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return std::nullopt;
  return Status(StatusCode::kInvalidArgument, "BAD_CONFIGURATION",
                path + ": cannot be written; check the folder and its permissions");
}

// Of a command line whose parts are sound by themselves.
Status BadArguments(std::string why) {
  return Status(StatusCode::kInvalidArgument, "BAD_CONFIGURATION", std::move(why));
}

std::optional<Status> OnePolicy(Arguments& arguments) {
  if (arguments.policies.empty()) arguments.policies = {"preemptive_priority"};
  if (arguments.policies.size() == 1) return std::nullopt;
  return BadArguments("one --policy, please; 'compare' takes several");
}

int RunOne(Arguments& arguments) {
  if (const auto wrong = OnePolicy(arguments)) return Refuse(*wrong);
  if (!arguments.trace_path.empty() && arguments.trace_path == arguments.svg_path) {
    return Refuse(BadArguments("--trace and --svg are the same file; give each its own"));
  }
  const Result<Scenario> scenario = Load(arguments);
  if (!scenario.ok()) return Refuse(scenario.status());
  const Result<std::vector<PolicyChoice>> choices = Policies(arguments);
  if (!choices.ok()) return Refuse(choices.status());

  std::vector<std::string> names;
  for (const SessionSpec& session : scenario->sessions) names.push_back(session.name);
  TimelineFile timeline(names);
  Picture picture(names);
  std::vector<Observer*> observers;
  if (!arguments.trace_path.empty()) {
    if (const Status opened = timeline.Open(arguments.trace_path); !opened.ok())
      return Refuse(opened);
    observers.push_back(&timeline);
  }
  if (!arguments.svg_path.empty()) observers.push_back(&picture);

  const Result<std::vector<RunFigures>> runs =
      RunAll({{*scenario, choices->front()}}, arguments, observers);
  if (!runs.ok()) return Refuse(runs.status());
  if (!arguments.trace_path.empty()) {
    if (const Status closed = timeline.Close(); !closed.ok()) return Refuse(closed);
  }
  if (!arguments.svg_path.empty()) {
    const auto failed = Write(arguments.svg_path, picture.Svg(runs->front()));
    if (failed) return Refuse(*failed);
  }
  std::cout << (arguments.json ? Json(*runs) : Table(runs->front()));
  return 0;
}

int Compare(Arguments& arguments) {
  if (arguments.policies.empty()) {
    for (const PolicyKind* kind : PolicyCatalog()) arguments.policies.emplace_back(kind->name);
  }
  const Result<Scenario> scenario = Load(arguments);
  if (!scenario.ok()) return Refuse(scenario.status());
  const Result<std::vector<PolicyChoice>> choices = Policies(arguments);
  if (!choices.ok()) return Refuse(choices.status());
  std::vector<std::pair<Scenario, PolicyChoice>> planned;
  for (const PolicyChoice& choice : *choices) planned.emplace_back(*scenario, choice);
  const Result<std::vector<RunFigures>> runs = RunAll(planned, arguments);
  if (!runs.ok()) return Refuse(runs.status());
  std::cout << (arguments.json ? Json(*runs) : ComparisonTable(*runs));
  return 0;
}

std::vector<std::string> SplitValues(const std::string& text) {
  std::vector<std::string> values;
  std::stringstream stream(text);
  for (std::string value; std::getline(stream, value, ',');) values.push_back(value);
  return values;
}

int Sweep(Arguments& arguments) {
  if (const auto wrong = OnePolicy(arguments)) return Refuse(*wrong);
  const Result<Scenario> scenario = Load(arguments);
  if (!scenario.ok()) return Refuse(scenario.status());
  const std::vector<std::string> values = SplitValues(arguments.values);
  std::vector<std::pair<Scenario, PolicyChoice>> planned;
  for (const std::string& value : values) {
    Scenario scaled = *scenario;
    std::string policy = arguments.policies.front();
    if (arguments.parameter == "load") {
      const auto load = ParseDecimal(value, kOrdinaryScale);
      if (!load || *load < kOrdinaryScale / 1'000 || *load > 1'000 * kOrdinaryScale) {
        return Refuse(BadArguments("load '" + value + "' is no number from 0.001 to 1000"));
      }
      ScaleLoad(scaled, *load);
    } else {
      policy += "," + arguments.parameter + "=" + value;
    }
    Result<PolicyChoice> choice = PolicyChoice::Parse(policy);
    if (!choice.ok()) return Refuse(choice.status());
    planned.emplace_back(std::move(scaled), *std::move(choice));
  }
  if (planned.empty()) {
    return Refuse(BadArguments("--values is empty; give some, such as 0.5,0.9"));
  }
  const Result<std::vector<RunFigures>> runs = RunAll(planned, arguments);
  if (!runs.ok()) return Refuse(runs.status());
  std::cout << (arguments.json ? Json(*runs) : SweepTable(arguments.parameter, values, *runs));
  return 0;
}

// CLI11 takes -1 and what is too large for the largest number.
CLI::Validator Seed() {
  return CLI::Validator(
      [](std::string& text) {
        std::uint64_t seed = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
        const bool sound = error == std::errc{} && end == text.data() + text.size();
        return sound ? std::string() : "'" + text + "' is no number from 0 to 2^64 - 1";
      },
      "", "seed");
}

void AddCommon(CLI::App* command, Arguments& arguments) {
  std::string names;
  for (const std::string& name : NamedScenarios()) names += (names.empty() ? "" : ", ") + name;
  command->add_option("--scenario", arguments.scenario, "a file, or one of " + names)
      ->capture_default_str();
  command->add_option("--policy", arguments.policies, "KIND[,param=value...], of " + PolicyNames())
      ->delimiter('\0');
  command->add_option("--seed", arguments.seed, "of arrivals and noise")
      ->capture_default_str()
      ->check(Seed());
  command->add_option("--duration", arguments.duration, "in place of the scenario's");
  command->add_flag("--json", arguments.json, "for programs");
  command->add_flag("--quiet", arguments.quiet, "no progress bar");
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Runs the scheduler and its policies in virtual time."};
  app.require_subcommand(1);
  CLI::App* run = app.add_subcommand("run", "one scenario under one policy");
  AddCommon(run, arguments);
  run->add_option("--trace", arguments.trace_path, "a file for Perfetto or chrome://tracing");
  run->add_option("--svg", arguments.svg_path, "slices over time, latencies");
  CLI::App* compare =
      app.add_subcommand("compare", "one scenario under several policies; default: all of ours");
  AddCommon(compare, arguments);
  CLI::App* sweep = app.add_subcommand("sweep", "a load or a policy's parameter over values");
  AddCommon(sweep, arguments);
  sweep->add_option("--parameter", arguments.parameter, "'load', or a parameter of the policy")
      ->capture_default_str();
  sweep->add_option("--values", arguments.values, "separated by commas")->capture_default_str();
  SwarmOptions swarm_options;
  CLI::App* swarm = app.add_subcommand("swarm", "random histories under the checker");
  swarm->add_option("--seed", swarm_options.seed, "the first")
      ->capture_default_str()
      ->check(Seed());
  swarm->add_option("--seeds", swarm_options.seeds, "how many")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000'000));
  swarm->add_flag("--verbose", swarm_options.verbose, "a line for every seed");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // --help is no mistake
  }
  if (swarm->parsed()) return RunSwarm(swarm_options);
  const int status = run->parsed()       ? RunOne(arguments)
                     : compare->parsed() ? Compare(arguments)
                                         : Sweep(arguments);
  if (std::cout.flush()) return status;
  std::cerr << "gpusched-sim: the figures cannot be written to the output\n";
  return 1;
}

}  // namespace
}  // namespace gpusched::sim

int main(int argc, char** argv) { return gpusched::sim::Main(argc, argv); }
