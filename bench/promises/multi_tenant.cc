// Thirty-two recorded clients, and five mixes of real-time and best-effort tasks, under each
// policy.
#include "promises/proof.h"
#include "promises/table.h"
#include "sim/report.h"

namespace gpusched::bench {
namespace {

constexpr const char* kPolicies[] = {"round_robin", "weighted_share", "preemptive_priority"};

// The busiest hour of the recording has 1,900 requests a second over all clients; 0.35 ms each load
// the device by two thirds.
constexpr const char* kServeGen = R"(
warm_up: 1s
sessions:
  - name: client
    target: 100ms
    source: {kind: servegen, file: requests/servegen_m-small_days0-1.csv, from: 74900s, work: 350us}
)";

std::string Disb(const std::string& mix) {
  return R"(
warm_up: 1s
sessions:
  - name: ")" +
         mix + R"("
    share: {weight: 100}
    real_time_share: {weight: 400, priority: 10}
    real_time_target: 20ms
    source: {kind: disb, file: requests/disb_)" +
         mix +
         R"(.json, results: published/disb_ABC.json}
)";
}

// p99 and share of each client, a column pair a policy.
Status MeasureScenario(const std::string& name, const std::string& text, Duration length,
                       Measurement& measurement) {
  Result<sim::Scenario> scenario = ScenarioOf(name, text);
  if (!scenario.ok()) return scenario.status();
  scenario->duration = length;
  std::vector<std::vector<std::string>> rows(scenario->sessions.size() + 1);
  rows[0] = {name};
  for (std::size_t i = 0; i < scenario->sessions.size(); ++i) {
    rows[i + 1] = {scenario->sessions[i].name};
  }
  for (const std::string policy : kPolicies) {
    const Result<sim::RunFigures> run = RunChecked(*scenario, policy, 1);
    if (!run.ok()) return run.status();
    rows[0].insert(rows[0].end(), {policy + " p99", "share"});
    for (std::size_t i = 0; i < run->sessions.size(); ++i) {
      const sim::SessionFigures& session = run->sessions[i];
      const Duration p99 = sim::Percentile(session.outcomes.latencies, 990);
      const double share =
          static_cast<double>(session.charged.count()) / static_cast<double>(run->window.count());
      rows[i + 1].push_back(session.outcomes.latencies.empty() ? "-"
                                                               : Rounded(AsMs(p99), 2) + "ms");
      rows[i + 1].push_back(Rounded(share * 100, 2) + "%");
    }
  }
  measurement.remark += sim::Aligned(rows);
  for (const std::string& remark : scenario->remarks) measurement.remark += remark + "\n";
  return Status::Ok();
}

}  // namespace

Result<Measurement> MeasureMultiTenant(Length length) {
  const Duration each = std::chrono::seconds(length == Length::kFull ? 600 : 20);
  Measurement measurement;
  double broken = 0;
  const auto measure = [&](const std::string& name, const std::string& text) {
    const Status status = MeasureScenario(name, text, each, measurement);
    if (status.ok()) return Status::Ok();
    if (status.reason() != "RULE_BROKEN") return status;
    ++broken;
    measurement.remark += status.message() + "\n";
    return Status::Ok();
  };
  if (Status status = measure("servegen", kServeGen); !status.ok()) return status;
  for (const std::string mix : {"A", "B", "C", "D", "E"}) {
    if (Status status = measure("disb_" + mix, Disb(mix)); !status.ok()) return status;
  }
  measurement.figures = {AtMost("rules broken, by the checker", broken, "", 0)};
  return measurement;
}

}  // namespace gpusched::bench
