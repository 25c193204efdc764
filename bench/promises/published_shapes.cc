// Shapes that others published, beside ours; nothing is fitted.
#include <algorithm>
#include <cmath>

#include "promises/proof.h"
#include "promises/table.h"
#include "sim/loaders.h"
#include "sim/report.h"

namespace gpusched::bench {
namespace {

constexpr const char* kResNet152 = "kernels/reef_resnet152.chain.csv";

double JobsASecond(const sim::RunFigures& run, const std::string& name) {
  return static_cast<double>(Of(run, name).outcomes.done) /
         (static_cast<double>(run.window.count()) / 1e9);
}

Result<sim::RunFigures> RunText(const std::string& text, const std::string& policy,
                                Duration length) {
  Result<sim::Scenario> scenario = ScenarioOf("published", text);
  if (!scenario.ok()) return scenario.status();
  scenario->duration = length;
  return RunUnder(*scenario, policy, 1);
}

std::string Loop(const std::string& name, int weight) {
  return "  - {name: " + name + ", share: {weight: " + std::to_string(weight) +
         "}, source: {kind: closed_loop, outstanding: 2, chain: " + kResNet152 + "}}\n";
}

// Two closed loops at 75:25.
Status MeasureTwoShares(Duration length, Measurement& measurement) {
  const std::string head = "warm_up: 1s\nsessions:\n";
  const auto isolated = RunText(head + Loop("a", 75), "weighted_share", length);
  if (!isolated.ok()) return isolated.status();
  const auto both = RunText(head + Loop("a", 75) + Loop("b", 25), "weighted_share", length);
  if (!both.ok()) return both.status();
  const double a = JobsASecond(*both, "a"), b = JobsASecond(*both, "b");
  const double share =
      static_cast<double>(Of(*both, "a").charged.count()) /
      static_cast<double>((Of(*both, "a").charged + Of(*both, "b").charged).count());
  measurement.figures.push_back(AtMost("75:25 off by", std::abs(share - 0.75) * 100, "points", 1));
  measurement.figures.push_back(AtLeast("throughput of both over alone",
                                        (a + b) / JobsASecond(*isolated, "a") * 100, "%", 95));
  measurement.remark += "75:25: ours " + Rounded(share, 3) + ":" + Rounded(1 - share, 3) + " at " +
                        Rounded((a + b) / JobsASecond(*isolated, "a") * 100, 1) +
                        " % of isolated; XSched .747:.253 at 94.3 %\n";
  return Status::Ok();
}

// p99 of an arrival's wait beside whole kernels of one length, so many in flight.
Result<double> PreemptionUs(int kernel_us, int depth, Duration length) {
  const std::string text = "warm_up: 100ms\ndevice: {commands_in_flight: " + std::to_string(depth) +
                           ", preemption_bound: 1s}\nsessions:\n"
                           "  - {name: high, share: {priority: 10}, source: {kind: poisson, rate: "
                           "5, work: 10us, cuttable: no}}\n"
                           "  - {name: low, source: {kind: closed_loop, outstanding: 4, work: " +
                           std::to_string(kernel_us * 64) + "us, launches: 64, cuttable: no}}\n";
  const auto run = RunText(text, "preemptive_priority", length);
  if (!run.ok()) return run.status();
  return AsUs(sim::Percentile(Of(*run, "high").outcomes.latencies, 990));
}

// The least-squares slope of y over x.
double Slope(const std::vector<std::pair<double, double>>& points) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [px, py] : points) {
    n += 1;
    x += px;
    y += py;
    xx += px * px;
    xy += px * py;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

std::vector<std::pair<double, double>> Points(
    const std::vector<sim::XSchedFigures::Preemption>& level) {
  std::vector<std::pair<double, double>> points;
  for (const auto& row : level) points.emplace_back(AsUs(row.kernel), AsUs(row.p99));
  return points;
}

Status MeasurePreemptionSlopes(const sim::XSchedFigures& published, Duration length,
                               Measurement& measurement) {
  std::vector<std::pair<double, double>> deep, shallow;
  for (const int kernel_us : {200, 500, 1'000, 1'500, 2'000}) {
    const Result<double> eight = PreemptionUs(kernel_us, 8, length);
    if (!eight.ok()) return eight.status();
    const Result<double> one = PreemptionUs(kernel_us, 1, length);
    if (!one.ok()) return one.status();
    deep.emplace_back(kernel_us, *eight);
    shallow.emplace_back(kernel_us, *one);
  }
  const double ours = Slope(deep) / Slope(shallow);
  const double theirs = Slope(Points(published.level1)) / Slope(Points(published.level2));
  // The published kernels run somewhat longer than their nominal time, so the slopes themselves
  // are theirs; what depth does to them is the shape.
  measurement.figures.push_back(AtMost("slope at depth 8 over depth 1, off the published by",
                                       std::abs(ours / theirs - 1) * 100, "%", 15));
  measurement.remark += "preemption p99 over kernel time: ours " + Rounded(Slope(deep), 2) +
                        " at depth 8, " + Rounded(Slope(shallow), 2) + " at 1; XSched " +
                        Rounded(Slope(Points(published.level1)), 2) + " and " +
                        Rounded(Slope(Points(published.level2)), 2) + "\n";
  return Status::Ok();
}

// XSched's foreground and background, with our policies; no verdict.
Status ShowLatencies(const sim::XSchedFigures& published, Duration length,
                     Measurement& measurement) {
  const std::string foreground =
      std::string(
          "warm_up: 1s\nsessions:\n  - {name: fg, share: {priority: 1}, source: {kind: "
          "poisson, rate: 20, chain: ") +
      kResNet152 + "}}\n";
  const auto alone = RunText(foreground, "preemptive_priority", length);
  if (!alone.ok()) return alone.status();
  const auto p99 = [](const sim::RunFigures& run) {
    return AsMs(sim::Percentile(Of(run, "fg").outcomes.latencies, 990));
  };
  std::vector<std::vector<std::string>> rows{{"p99 over alone", "unscheduled", "scheduled"}};
  std::vector<std::string> ours{"ours (round_robin, preemptive_priority)"};
  for (const char* policy : {"round_robin", "preemptive_priority"}) {
    const auto both = RunText(foreground + Loop("bg", 100), policy, length);
    if (!both.ok()) return both.status();
    ours.push_back(Rounded(p99(*both) / p99(*alone), 3));
  }
  rows.push_back(ours);
  for (const auto& device : published.latencies) {
    const double base = AsMs(device.isolated_p99);
    rows.push_back({"XSched " + device.device, Rounded(AsMs(device.native_p99) / base, 3),
                    Rounded(AsMs(device.scheduled_p99) / base, 3)});
  }
  measurement.remark += sim::Aligned(rows);
  return Status::Ok();
}

// DISB's mixes: mean latency over that alone, as published and under our policy; no verdict.
Status ShowMixes(const std::string& folder, Duration length, Measurement& measurement) {
  const auto results = sim::LoadDisbResults(folder + "/published/disb_ABC.json");
  if (!results.ok()) return results.status();
  std::vector<std::vector<std::string>> rows{{"mean over alone", "ours", "trt", "triton", "tfs"}};
  for (const std::string mix : {"A", "B", "C"}) {
    const auto run = RunText(
        "warm_up: 1s\nsessions:\n  - {name: m, real_time_share: {priority: 10}, "
        "source: {kind: disb, file: requests/disb_" +
            mix + ".json, results: published/disb_ABC.json}}\n",
        "preemptive_priority", length);
    if (!run.ok()) return run.status();
    for (const sim::SessionFigures& session : run->sessions) {
      const std::string client = session.name.substr(2);
      std::vector<std::string> row{mix + " " + client, "-", "-", "-", "-"};
      double sum = 0;
      for (const Duration latency : session.outcomes.latencies) sum += AsUs(latency);
      const double mean =
          sum / static_cast<double>(std::max<std::size_t>(1, session.outcomes.latencies.size()));
      for (const sim::DisbResult& result : *results) {
        if (result.client != client) continue;
        const std::size_t dot = result.framework_and_mix.find('.');
        if (result.framework_and_mix.substr(dot + 1) != mix) continue;
        const std::string framework = result.framework_and_mix.substr(0, dot);
        const std::size_t column = framework == "trt" ? 2 : framework == "triton" ? 3 : 4;
        row[column] = Rounded(AsUs(result.latency) / AsUs(result.alone), 2);
        if (column == 2) row[1] = Rounded(mean / AsUs(result.alone), 2);
      }
      rows.push_back(row);
    }
  }
  measurement.remark += sim::Aligned(rows);
  return Status::Ok();
}

}  // namespace

Result<Measurement> MeasurePublishedShapes(Length length) {
  const std::optional<std::string> folder = sim::WorkloadsFolder();
  Measurement measurement;
  if (!folder) {
    measurement.not_run = "the published figures are in the workloads' folder, which is not there";
    return measurement;
  }
  const Duration each = std::chrono::seconds(length == Length::kFull ? 600 : 60);
  const Result<sim::XSchedFigures> published = sim::LoadXSched(*folder + "/published/xsched.json");
  if (!published.ok()) return published.status();
  if (Status status = MeasureTwoShares(each, measurement); !status.ok()) return status;
  if (Status status = MeasurePreemptionSlopes(*published, each * 4, measurement); !status.ok()) {
    return status;
  }
  if (Status status = ShowLatencies(*published, each, measurement); !status.ok()) return status;
  if (Status status = ShowMixes(*folder, each / 3, measurement); !status.ok()) return status;
  return measurement;
}

}  // namespace gpusched::bench
