// Scenario files: what the good ones mean and what is said of the bad ones.
#include "sim/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "temporary_file.h"

namespace gpusched::sim {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  const Result<Scenario> scenario = ParseScenario(text, "s.yaml", ".");
  return scenario.ok() ? "none" : scenario.status().message();
}
std::string WithSession(const std::string& session) { return "sessions:\n  - " + session + "\n"; }
std::string WithSource(const std::string& source) {
  return WithSession("{name: a, source: {" + source + "}}");
}

TEST(Scenario, SaysWhatItMeans) {
  const Result<Scenario> scenario = ParseScenario(R"(
duration: 5s
warm_up: 100ms
device: {costs: zero, memory: 8GiB, preemption_bound: 500us}
sessions:
  - name: frames
    share: {weight: 300, min: 60%, max: 0.8, strict: yes, priority: 10}
    target: 20ms
    memory: 2GiB
    queues: 2
    source: {kind: periodic, rate: 60, work: 8ms, launches: 4, cv: 0.1}
  - name: batch
    count: 2
    source: {kind: closed_loop, outstanding: 3, work: 5ms, longest_launch: 2ms, cuttable: no}
)",
                                                  "s.yaml", ".");
  ASSERT_TRUE(scenario.ok()) << scenario.status().message();
  EXPECT_EQ(scenario->traits.preemption_bound, 500us);
  EXPECT_EQ(scenario->costs.launch_gap, 0ns);
  ASSERT_EQ(scenario->sessions.size(), 3u);
  const SessionSpec& frames = scenario->sessions[0];
  EXPECT_EQ(frames.share.min, 600'000'000);
  EXPECT_EQ(frames.share.max, 800'000'000);
  EXPECT_EQ(frames.share.latency_target, 20ms);
  EXPECT_EQ(frames.source.gap, 16'666'666ns);
  EXPECT_EQ(frames.source.recipe->size(), 4u);
  EXPECT_EQ(frames.source.recipe->front().time, 2ms);
  const SessionSpec& batch = scenario->sessions[2];
  EXPECT_EQ(batch.name, "batch.2");
  ASSERT_EQ(batch.source.recipe->size(), 3u);
  EXPECT_EQ(batch.source.recipe->back().time, 1ms);
  EXPECT_FALSE(batch.source.recipe->back().operation.cuttable);
}

TEST(Scenario, OfEmptyOrBrokenTextSaysWhere) {
  EXPECT_EQ(ErrorOf(""), "s.yaml:1: the file is empty");
  EXPECT_EQ(ErrorOf("# nothing\n"), "s.yaml:1: the file is empty");
  EXPECT_THAT(ErrorOf("duration: [1\n"), HasSubstr("s.yaml:2: "));
  EXPECT_THAT(ErrorOf("just words\n"), HasSubstr("s.yaml:1: a scenario must be a map"));
  EXPECT_THAT(ErrorOf("duration: 1s\n"), HasSubstr("s.yaml:1: a scenario needs a list 'sessions'"));
  EXPECT_THAT(ErrorOf("sessions: []\n"), HasSubstr("at least one"));
  EXPECT_THAT(ErrorOf("sessions: 7\n"), HasSubstr("needs a list 'sessions'"));
}

TEST(Scenario, TellsAllErrorsAtOnceEachWithItsLine) {
  EXPECT_THAT(
      ErrorOf(R"(duration: soon
warm_up: -1s
colour: red
sessions:
  - name: a
    share: {weight: 0, strict: maybe, wait: 3}
    source: {kind: poisson, rate: -5, work: 1ms}
  - name: a
    source: {kind: dance}
)"),
      AllOf(HasSubstr("s.yaml:1: 'duration' is 'soon'"), HasSubstr("s.yaml:2: 'warm_up' is '-1s'"),
            HasSubstr("s.yaml:3: unknown key 'colour'"),
            HasSubstr("s.yaml:6: 'weight' is '0'; it must be a whole number, 1 to 10000"),
            HasSubstr("s.yaml:6: 'strict' is 'maybe'"), HasSubstr("s.yaml:6: unknown key 'wait'"),
            HasSubstr("s.yaml:7: 'rate' is '-5'"),
            HasSubstr("s.yaml:9: unknown kind of source 'dance'")));
}

TEST(Scenario, RefusesAbsurdAndDoubledValues) {
  EXPECT_THAT(ErrorOf(WithSource("kind: poisson, rate: 1e99, work: 1ms")), HasSubstr("'1e99'"));
  EXPECT_THAT(ErrorOf(WithSource("kind: poisson, rate: 99999999999, work: 1ms")),
              HasSubstr("rate"));
  EXPECT_THAT(ErrorOf(WithSource("kind: periodic, period: 0, work: 1ms")), HasSubstr("'period'"));
  EXPECT_THAT(ErrorOf(WithSource("kind: periodic, period: 1ms, rate: 5, work: 1ms")),
              HasSubstr("'period' or 'rate', one of them"));
  EXPECT_THAT(ErrorOf(WithSource("kind: closed_loop, work: 999999h")),
              HasSubstr("'work' is 999999h"));
  EXPECT_THAT(ErrorOf(WithSource("kind: closed_loop")), HasSubstr("needs 'work'"));
  EXPECT_THAT(ErrorOf(WithSource("kind: closed_loop, work: 1h, longest_launch: 1us")),
              HasSubstr("more than 4,000 launches"));
  EXPECT_THAT(ErrorOf(WithSource("kind: gamma, rate: 1, work: 1ms, shape: 0")),
              HasSubstr("'shape'"));
  EXPECT_THAT(ErrorOf(WithSource("kind: closed_loop, work: 1ms, work: 2ms")),
              HasSubstr("'work' is there twice"));
  EXPECT_THAT(ErrorOf("duration: 1s\nwarm_up: 2s\n" + WithSource("kind: closed_loop, work: 1ms")),
              HasSubstr("warm_up must be shorter"));
  const std::string fine = "source: {kind: closed_loop, work: 1ms}";
  EXPECT_THAT(ErrorOf("sessions:\n  - {name: a, " + fine + "}\n  - {name: a, " + fine + "}\n"),
              HasSubstr("s.yaml:3: the name 'a' is there twice"));
  EXPECT_THAT(ErrorOf(WithSession("{name: a, count: 10001, " + fine + "}")), HasSubstr("'count'"));
  EXPECT_THAT(ErrorOf(WithSession("{name: a, share: {min: 60%, max: 50%}, " + fine + "}")),
              HasSubstr("is more than max"));
  EXPECT_THAT(ErrorOf(WithSession("{name: a, share: {strict: yes}, " + fine + "}")),
              HasSubstr("needs a min above 0"));
  EXPECT_THAT(ErrorOf(WithSession("{name: a, memory: 17GiB, " + fine + "}")),
              HasSubstr("more than the 16GiB of the device"));
  EXPECT_THAT(ErrorOf(WithSession("{source: {kind: closed_loop, work: 1ms}}")),
              HasSubstr("'name'"));
  EXPECT_THAT(ErrorOf(WithSession("{name: a}")), HasSubstr("has no 'source'"));
}

TEST(Scenario, RefusesMoreMinThanThereIsAndSaysTheSum) {
  const std::string source = "source: {kind: closed_loop, work: 1ms}";
  EXPECT_THAT(ErrorOf("sessions:\n  - {name: a, share: {min: 60%}, " + source +
                      "}\n  - {name: b, share: {min: 47.5%}, " + source + "}\n"),
              HasSubstr("s.yaml:2: the sessions' min together are 107.5 % of the device"));
}

TEST(Scenario, OfAFileThatIsMissingOrHuge) {
  EXPECT_THAT(LoadScenario("/nowhere.yaml").status().message(),
              AllOf(HasSubstr("no such file"), HasSubstr("recommendation, game, team")));
  const TemporaryFile huge(std::string(5 << 20, '#'));
  EXPECT_THAT(LoadScenario(huge.path()).status().message(), HasSubstr("larger than 4 MiB"));
  const TemporaryFile empty("");
  EXPECT_THAT(LoadScenario(empty.path()).status().message(), HasSubstr(empty.path() + ":"));
}

TEST(Scenario, NamesTheLineOfATraceThatIsBroken) {
  const TemporaryFile trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,1,1\nnonsense\n");
  EXPECT_THAT(ErrorOf(WithSource("kind: trace, file: " + trace.path())),
              HasSubstr(trace.path() + ":3: has 1 fields"));
  EXPECT_THAT(ErrorOf(WithSource("kind: trace, file: /nowhere.csv")), HasSubstr("neither beside"));
  EXPECT_THAT(ErrorOf(WithSource("kind: trace")), HasSubstr("needs 'file'"));
}

// Where the workloads' folder is missing, stand-ins take its place and say so.
TEST(Scenario, GeneratesWhatIsMissingAndSaysSo) {
  const char* before = std::getenv("GPUSCHED_WORKLOADS");
  const std::string saved = before != nullptr ? before : "";
  setenv("GPUSCHED_WORKLOADS", "/nowhere", 1);
  for (const char* source :
       {"kind: trace, file: requests/azure.csv, load: 0.5",
        "kind: servegen, file: r.csv, work: 1ms", "kind: disb, file: requests/disb_A.json",
        "kind: replay, file: kernels/hta.csv",
        "kind: steps, file: requests/alibaba.csv, unit: 10us",
        "kind: closed_loop, chain: kernels/orion.csv"}) {
    const Result<Scenario> scenario = ParseScenario(WithSource(source), "s.yaml", ".");
    ASSERT_TRUE(scenario.ok()) << source << ": " << scenario.status().message();
    ASSERT_EQ(scenario->remarks.size(), 1u) << source;
    EXPECT_THAT(scenario->remarks.front(), HasSubstr("generated, of the same shape"));
    EXPECT_FALSE(scenario->sessions.empty());
  }
  if (before != nullptr) {
    setenv("GPUSCHED_WORKLOADS", saved.c_str(), 1);
  } else {
    unsetenv("GPUSCHED_WORKLOADS");
  }
}

TEST(Scenario, OurOwnOnesAreGood) {
  for (const std::string& name : NamedScenarios()) {
    const Result<Scenario> scenario = LoadScenario(name);
    EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  }
  EXPECT_THAT(NamedScenarios(), ::testing::ElementsAre("recommendation", "game", "team"));
}

}  // namespace
}  // namespace gpusched::sim
