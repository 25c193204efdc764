// Whole runs: what is measured, and how it is shown.
#include "sim/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "sim/picture.h"
#include "sim/report.h"
#include "sim/timeline_file.h"
#include "temporary_file.h"

namespace gpusched::sim {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Scenario Parsed(const std::string& text) {
  Result<Scenario> scenario = ParseScenario(text, "test.yaml", ".");
  EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  return *std::move(scenario);
}

RunFigures RunOf(const Scenario& scenario, const std::string& policy,
                 const RunOptions& options = {}) {
  const Result<PolicyChoice> choice = PolicyChoice::Parse(policy);
  EXPECT_TRUE(choice.ok()) << choice.status().message();
  Result<RunFigures> run = Run(scenario, *choice, options);
  EXPECT_TRUE(run.ok()) << run.status().message();
  return *std::move(run);
}

RunOptions Seed(std::uint64_t seed) {
  RunOptions options;
  options.seed = seed;
  return options;
}

constexpr const char* kPair = R"(
duration: 2s
warm_up: 1s
device: {costs: zero}
sessions:
  - {name: a, share: {weight: 300}, source: {kind: closed_loop, outstanding: 2, work: 5ms}}
  - {name: b, share: {weight: 100}, source: {kind: closed_loop, outstanding: 2, work: 3ms}}
)";

TEST(Run, MeasuresSharesOfTheWindow) {
  const RunFigures run = RunOf(Parsed(kPair), "weighted_share");
  ASSERT_EQ(run.sessions.size(), 2u);
  EXPECT_NEAR(static_cast<double>(run.sessions[0].charged.count()) / 1e9, 0.75, 0.01);
  EXPECT_NEAR(static_cast<double>(run.sessions[1].charged.count()) / 1e9, 0.25, 0.01);
  EXPECT_EQ(run.window, 1s);
  EXPECT_NEAR(static_cast<double>(run.device_charged.count()) / 1e9, 1, 0.002);
}

TEST(Run, CountsWhatCannotBeServedAsMissed) {
  const Scenario scenario = Parsed(R"(
duration: 2s
drain: 0
device: {costs: zero}
sessions:
  - {name: a, target: 5ms, source: {kind: periodic, rate: 200, work: 10ms, phase: 0}}
)");
  const RunFigures run = RunOf(scenario, "round_robin");
  const Outcomes& outcomes = run.sessions[0].outcomes;
  EXPECT_EQ(outcomes.submitted, 400u);
  EXPECT_EQ(outcomes.done, 200u);
  EXPECT_EQ(outcomes.met, 0u);
  EXPECT_EQ(outcomes.unfinished(), 200u);
  EXPECT_EQ(run.sessions[0].PartMet(), 0);
}

TEST(Run, ALatencyIsCountedFromTheArrival) {
  const Scenario scenario = Parsed(R"(
duration: 1s
device: {costs: zero}
sessions:
  - {name: a, target: 15ms, source: {kind: periodic, rate: 100, work: 4ms, cuttable: no, phase: 0}}
)");
  const RunFigures run = RunOf(scenario, "round_robin");
  EXPECT_EQ(run.sessions[0].PartMet(), 1);
  EXPECT_EQ(Percentile(run.sessions[0].outcomes.latencies, 1'000), 4ms);
}

TEST(Run, OneSeedIsOneHistoryForEverySource) {
  setenv("GPUSCHED_WORKLOADS", "/nowhere", 1);
  const Scenario scenario = Parsed(R"(
duration: 3s
sessions:
  - {name: a, source: {kind: poisson, rate: 20, work: 3ms, cv: 0.2}}
  - {name: b, source: {kind: gamma, rate: 20, shape: 0.3, work: 3ms}}
  - {name: c, source: {kind: weibull, rate: 20, shape: 0.4, work: 3ms}, queues: 3}
  - {name: d, source: {kind: trace, file: t.csv, load: 0.2}}
  - {name: e, source: {kind: replay, file: h.csv, every: 500ms}}
  - {name: f, source: {kind: steps, file: s.csv, unit: 10us}}
  - {name: g, source: {kind: servegen, file: g.csv, work: 2ms}}
  - {name: h, source: {kind: disb, file: d.json}}
)");
  unsetenv("GPUSCHED_WORKLOADS");
  for (const char* policy : {"round_robin", "weighted_share", "preemptive_priority"}) {
    const RunFigures once = RunOf(scenario, policy, Seed(5));
    EXPECT_EQ(once.hash, RunOf(scenario, policy, Seed(5)).hash) << policy;
    EXPECT_NE(once.hash, RunOf(scenario, policy, Seed(6)).hash) << policy;
    EXPECT_EQ(once.ejections, 0u);
    for (const SessionFigures& session : once.sessions) {
      EXPECT_EQ(session.outcomes.refused + session.outcomes.failed, 0u) << session.name;
    }
  }
}

TEST(Run, ProgressGoesUpToTheEnd) {
  int last = -1;
  RunOptions options;
  options.progress = [&](int per_mille) {
    EXPECT_GE(per_mille, last);
    last = per_mille;
  };
  RunOf(Parsed(kPair), "round_robin", options);
  EXPECT_EQ(last, 1'000);
}

TEST(PolicyChoice, RefusesWhatTheCatalogDoesNotKnow) {
  EXPECT_THAT(PolicyChoice::Parse("lottery").status().message(), HasSubstr("lottery"));
  EXPECT_THAT(PolicyChoice::Parse("weighted_share,slice=0").status().message(), HasSubstr("slice"));
  EXPECT_THAT(PolicyChoice::Parse("weighted_share,speed=1ms").status().message(),
              HasSubstr("speed"));
  EXPECT_EQ(PolicyChoice::Parse("round_robin,slice=2ms")->Text(), "round_robin,slice=2ms");
}

TEST(Percentile, IsOfNearestRank) {
  std::vector<Duration> values;
  for (int i = 100; i >= 1; --i) values.emplace_back(i);
  EXPECT_EQ(Percentile(values, 500), Duration(50));
  EXPECT_EQ(Percentile(values, 990), Duration(99));
  EXPECT_EQ(Percentile(values, 1'000), Duration(100));
  EXPECT_EQ(Percentile({}, 500), Duration(0));
}

TEST(Report, IsReadableByPeopleAndPrograms) {
  const RunFigures run = RunOf(Parsed(kPair), "weighted_share");
  EXPECT_THAT(Table(run), HasSubstr("75.0"));
  const YAML::Node json = YAML::Load(Json({run, run}));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["sessions"][1]["name"].as<std::string>(), "b");
  EXPECT_NEAR(json[0]["sessions"][0]["got"].as<double>(), 0.75, 0.01);
  EXPECT_THAT(ComparisonTable({run, run}), HasSubstr("weighted_share"));
  EXPECT_THAT(SweepTable("load", {"0.5", "1"}, {run, run}), HasSubstr("0.5"));
}

TEST(TimelineFile, HoldsEverySliceAndCommand) {
  const TemporaryFile file("");
  TimelineFile timeline({"a", "b"});
  ASSERT_TRUE(timeline.Open(file.path()).ok());
  RunOptions options;
  options.observers = {&timeline};
  Scenario scenario = Parsed(kPair);
  scenario.duration = 20ms;
  scenario.warm_up = 0s;
  scenario.drain = 0s;
  const RunFigures run = RunOf(scenario, "round_robin", options);
  ASSERT_TRUE(timeline.Close().ok());
  const YAML::Node events = YAML::LoadFile(file.path())["traceEvents"];
  std::uint64_t commands = 0;
  for (const YAML::Node& event : events) {
    if (event["ph"].as<std::string>() == "X" && event["tid"].as<int>() == 1) ++commands;
  }
  // Those still in flight at the end are not there.
  EXPECT_GE(commands + 64, run.commands);
  EXPECT_LE(commands, run.commands);
  EXPECT_FALSE(TimelineFile({}).Open("/nowhere/at/all").ok());
}

TEST(Picture, DrawsALaneForEachSession) {
  Picture picture({"a<b", "b"});
  RunOptions options;
  options.observers = {&picture};
  const RunFigures run = RunOf(Parsed(kPair), "round_robin", options);
  const std::string svg = picture.Svg(run);
  EXPECT_THAT(svg, HasSubstr("a&lt;b"));
  EXPECT_THAT(svg, HasSubstr("<rect x="));
  EXPECT_THAT(svg, HasSubstr("<polyline"));
}

}  // namespace
}  // namespace gpusched::sim
