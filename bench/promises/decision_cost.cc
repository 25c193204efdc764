// Runs the benchmark of the same name and reads its report.
#include <yaml-cpp/yaml.h>

#include <map>
#include <string>

#include "promises/child.h"
#include "promises/table.h"

namespace gpusched::bench {
namespace {

constexpr std::chrono::seconds kWithin{50};

struct Cost {
  double ns = 0, allocations = 0;
};

// By "policy/sessions". The benchmark's JSON is YAML too.
Result<std::map<std::string, Cost>> Medians(const std::string& report) {
  std::map<std::string, Cost> costs;
  try {
    for (const YAML::Node& run : YAML::Load(report)["benchmarks"]) {
      if (run["aggregate_name"].as<std::string>("") != "median") continue;
      // decision_cost/round_robin/64
      const std::string name = run["run_name"].as<std::string>();
      costs[name.substr(name.find('/') + 1)] = {.ns = run["cpu_time"].as<double>(),
                                                .allocations = run["allocations"].as<double>()};
    }
  } catch (const YAML::Exception& error) {
    return Status(StatusCode::kInternal, "BAD_REPORT",
                  "the benchmark's report cannot be read: " + std::string(error.what()));
  }
  return costs;
}

}  // namespace

Result<Measurement> MeasureDecisionCost(Length length) {
  const std::string repetitions = length == Length::kFull ? "15" : "5";
  Result<std::unique_ptr<Child>> bench = Child::Start(
      {ProgramPath("decision_cost_bench"), "--benchmark_format=json", "--benchmark_min_time=0.2",
       "--benchmark_repetitions=" + repetitions, "--benchmark_report_aggregates_only=true"});
  if (!bench.ok()) return bench.status();
  const Result<std::string> report = (*bench)->ReadAll(kWithin * (length == Length::kFull ? 3 : 1));
  if (!report.ok()) return report.status();
  const Result<std::map<std::string, Cost>> costs = Medians(*report);
  if (!costs.ok()) return costs.status();

  Measurement measurement;
  for (const std::string policy : {"round_robin", "weighted_share", "preemptive_priority"}) {
    const auto few = costs->find(policy + "/64"), many = costs->find(policy + "/10000");
    if (few == costs->end() || many == costs->end()) {
      return Status(StatusCode::kInternal, "BAD_REPORT", "the benchmark did not measure " + policy);
    }
    measurement.figures.push_back(
        AtMost(policy + ": at 64 sessions", few->second.ns / 1'000, "us", 0.5));
    measurement.figures.push_back(
        AtMost(policy + ": 10,000 over 64", many->second.ns / few->second.ns, "x", 4));
    measurement.figures.push_back(AtMost(
        policy + ": allocations", few->second.allocations + many->second.allocations, "", 0));
  }
  return measurement;
}

}  // namespace gpusched::bench
