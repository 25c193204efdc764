// What trainings beside an inference service add to its tail, at every load.
#include <cmath>
#include <span>

#include "promises/proof.h"
#include "promises/table.h"
#include "sim/report.h"

namespace gpusched::bench {
namespace {

constexpr const char* kPolicy = "preemptive_priority";
constexpr double kLoads[] = {0.1, 0.3, 0.5, 0.7};
constexpr int kTrainings[] = {1, 4, 8};
// The short form leaves the middle out and measures the ends for longer.
constexpr int kFewTrainings[] = {1, 8};
constexpr const char* kTrainingChains[] = {"kernels/orion_resnet50_32_fb1.csv",
                                           "kernels/orion_mobilenetv2_64_fb1.csv",
                                           "kernels/orion_bert_8_fb1.csv"};
// Every training has met every kernel of its chain by then, BERT's 4,777 too, with an eighth of
// what the highest load leaves.
constexpr Duration kWarmUp = std::chrono::seconds(40);
struct Model {
  const char *name, *chain;
};
constexpr Model kModels[] = {{"ResNet-50", "kernels/orion_resnet50_4_fwd.csv"},
                             {"MobileNetV2", "kernels/orion_mobilenetv2_4_fwd.csv"}};

// An inference service at `per_second`, beside so many trainings.
std::string Text(const Model& model, double per_second, int trainings, const std::string& device,
                 bool cuttable) {
  const std::string cut = cuttable ? "" : ", cuttable: no";
  std::string text = "duration: 41s\nwarm_up: 40s\ndevice: {" + device +
                     "}\nsessions:\n  - {name: inference, share: {priority: 10}, target: 20ms, "
                     "source: {kind: poisson, rate: " +
                     Rounded(per_second, 6) + ", chain: " + model.chain + cut + "}}\n";
  for (int i = 0; i < trainings; ++i) {
    text += "  - {name: training" + std::to_string(i) +
            ", source: {kind: closed_loop, outstanding: 2, chain: " +
            kTrainingChains[static_cast<std::size_t>(i) % std::size(kTrainingChains)] + cut +
            "}}\n";
  }
  return text;
}

Result<sim::RunFigures> RunText(const std::string& text, Duration length, std::uint64_t seed) {
  Result<sim::Scenario> scenario = ScenarioOf("tail", text);
  if (!scenario.ok()) return scenario.status();
  scenario->duration = kWarmUp + length;
  Result<sim::RunFigures> run = RunUnder(*scenario, kPolicy, seed);
  if (run.ok()) run->remarks = scenario->remarks;
  return run;
}

// Of one inference with the device to itself.
Result<Duration> Alone(const Model& model, const std::string& device, bool cuttable) {
  const Result<sim::RunFigures> run =
      RunText(Text(model, 1, 0, device, cuttable), std::chrono::seconds(30), 1);
  if (!run.ok()) return run.status();
  return sim::Percentile(Of(*run, "inference").outcomes.latencies, 500);
}

double TrainingsOfTheRest(const sim::RunFigures& run) {
  Duration kernel{0};
  for (const sim::SessionFigures& session : run.sessions) {
    if (session.name != "inference") kernel += session.kernel;
  }
  const Duration rest = run.window - Of(run, "inference").charged;
  return static_cast<double>(kernel.count()) / static_cast<double>(rest.count());
}

struct Worst {
  double value = 0;
  std::string cell;
  void AtMost(double candidate, const std::string& where) {
    if (cell.empty() || candidate > value) *this = {candidate, where};
  }
  void AtLeast(double candidate, const std::string& where) {
    if (cell.empty() || candidate < value) *this = {candidate, where};
  }
};

struct Grid {
  Worst added_us, ratio, trainings;  // p99 less and over that of the same arrivals alone
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> remarks;
};

Status MeasureGrid(const std::string& device, std::span<const int> beside, Duration length,
                   Grid& grid) {
  grid.rows.push_back({"model", "load", "beside", "p99 alone", "p99", "added", "trainings"});
  for (const Model& model : kModels) {
    const Result<Duration> alone = Alone(model, device, true);
    if (!alone.ok()) return alone.status();
    for (const double load : kLoads) {
      const double rate = load * 1e9 / static_cast<double>(alone->count());
      const Result<sim::RunFigures> isolated =
          RunText(Text(model, rate, 0, device, true), length, 7);
      if (!isolated.ok()) return isolated.status();
      const Duration isolated_p99 =
          sim::Percentile(Of(*isolated, "inference").outcomes.latencies, 990);
      for (const int trainings : beside) {
        const Result<sim::RunFigures> run =
            RunText(Text(model, rate, trainings, device, true), length, 7);
        if (!run.ok()) return run.status();
        const Duration p99 = sim::Percentile(Of(*run, "inference").outcomes.latencies, 990);
        const std::string cell = std::string(model.name) + " at " + Rounded(load * 100, 0) +
                                 " % beside " + std::to_string(trainings);
        const double rest = TrainingsOfTheRest(*run);
        grid.added_us.AtMost(AsUs(p99 - isolated_p99), cell);
        grid.ratio.AtMost(
            static_cast<double>(p99.count()) / static_cast<double>(isolated_p99.count()), cell);
        grid.trainings.AtLeast(rest, cell);
        grid.rows.push_back({model.name, Rounded(load * 100, 0) + "%", std::to_string(trainings),
                             Rounded(AsMs(isolated_p99), 3) + "ms", Rounded(AsMs(p99), 3) + "ms",
                             Rounded(AsUs(p99 - isolated_p99), 0) + "us",
                             Rounded(rest * 100, 1) + "%"});
        grid.remarks = run->remarks;
      }
    }
  }
  return Status::Ok();
}

// Kernels run whole, one in flight, no costs, sparse arrivals: an arrival waits for what is left of
// the kernel it meets, on average the sum of squares over twice the sum of the chain's times.
Status MeasureClosedForm(Duration length, Measurement& measurement) {
  const std::string device =
      "costs: zero, commands_in_flight: 1, preemption_bound: 1s, shortest_useful_chunk: 1ns";
  const Model& model = kModels[1];
  const Result<Duration> alone = Alone(model, device, false);
  if (!alone.ok()) return alone.status();
  const double rate = 0.015 * 1e9 / static_cast<double>(alone->count());
  const std::string text = Text(model, rate, 1, device, false);
  const Result<sim::RunFigures> beside = RunText(text, length, 3);
  if (!beside.ok()) return beside.status();
  const Result<sim::RunFigures> isolated = RunText(Text(model, rate, 0, device, false), length, 3);
  if (!isolated.ok()) return isolated.status();
  const auto& with = Of(*beside, "inference").outcomes.latencies;
  const auto& without = Of(*isolated, "inference").outcomes.latencies;
  const Result<sim::Scenario> scenario = ScenarioOf("tail", text);
  double sum = 0, squares = 0;
  for (const sim::Work& work : *scenario->sessions[1].source.recipe) {
    const double us = AsUs(work.time);
    sum += us;
    squares += us * us;
  }
  const std::size_t jobs = std::min(with.size(), without.size());
  double mean = 0, variance = 0;
  for (std::size_t i = 0; i < jobs; ++i) mean += AsUs(with[i] - without[i]);
  mean /= static_cast<double>(jobs);
  for (std::size_t i = 0; i < jobs; ++i) {
    const double off = AsUs(with[i] - without[i]) - mean;
    variance += off * off;
  }
  const double error = std::sqrt(variance) / static_cast<double>(jobs);
  const double expected = squares / (2 * sum);
  measurement.figures.push_back(AtMost("closed form: off by standard errors of the mean",
                                       std::abs(mean - expected) / error, "", 3));
  measurement.remark += "closed form: mean added wait " + Rounded(mean, 1) + " us, expected " +
                        Rounded(expected, 1) + " us, standard error " + Rounded(error, 2) +
                        " us, " + std::to_string(jobs) + " arrivals\n";
  return Status::Ok();
}

}  // namespace

Result<Measurement> MeasureTail(Length length) {
  const bool full = length == Length::kFull;
  const Duration each = std::chrono::seconds(full ? 300 : 90);
  const std::span<const int> beside = full ? std::span<const int>(kTrainings) : kFewTrainings;
  Measurement measurement;
  Grid usual, tight;
  if (Status status = MeasureGrid("", beside, each, usual); !status.ok()) return status;
  if (Status status = MeasureGrid("preemption_bound: 250us", beside, each, tight); !status.ok()) {
    return status;
  }
  // The bound in force (a twentieth of the target, or the setting: both 1 ms) and the launch gap.
  constexpr double kBoundUs = 1'008;
  measurement.figures = {
      AtMost("added at p99, default: " + usual.added_us.cell, usual.added_us.value, "us", kBoundUs),
      AtMost("p99 over alone, 0.25 ms: " + tight.ratio.cell, tight.ratio.value, "x", 1.05),
      AtLeast("trainings, default: " + usual.trainings.cell, usual.trainings.value * 100, "%", 80),
      AtLeast("trainings, 0.25 ms: " + tight.trainings.cell, tight.trainings.value * 100, "%", 65)};
  if (Status status = MeasureClosedForm(each * 7, measurement); !status.ok()) return status;
  measurement.remark += "default settings\n" + sim::Aligned(usual.rows) +
                        "preemption_bound 0.25 ms\n" + sim::Aligned(tight.rows);
  for (const std::string& remark : usual.remarks) measurement.remark += remark + "\n";
  return measurement;
}

}  // namespace gpusched::bench
