// The simulation as a driver: times, faults, and one history for one seed.
#include "sim/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog.h"

namespace gpusched::sim {
namespace {

using namespace std::chrono_literals;

const device::Costs kNone{.launch_gap = Duration(0),
                          .chunk = Duration(0),
                          .session_switch = Duration(0),
                          .noise_ppb = 0,
                          .outlier_ppb = 0,
                          .outlier_factor = 1,
                          .copy_bandwidth = 0};

SimulationOptions Free() {
  SimulationOptions options;
  options.costs = kNone;
  return options;
}
std::unique_ptr<Policy> Build(const std::string& kind) {
  return std::move(BuildPolicy(kind, std::string_view("")).policy);
}
std::shared_ptr<const Recipe> OneLaunch(Duration time, bool cuttable = true) {
  return std::make_shared<const Recipe>(1, LaunchOf(time, 100, 7, cuttable));
}

// Submits again whenever a job ends, and keeps count.
struct Loop : Client {
  SessionId session;
  std::shared_ptr<const Recipe> recipe;
  int done = 0, failed = 0;
  void JobEnded(Simulation& sim, const core::Job&, core::JobOutcome outcome,
                const Status& refusal) override {
    if (!refusal.ok()) return;
    (outcome == core::JobOutcome::kDone ? done : failed) += 1;
    sim.Submit({.session = session, .recipe = recipe, .client = this});
  }
};

struct Ends : Observer {
  std::vector<Duration> ends;
  void OnEvent(Time, const core::Event& event) override {
    if (const auto* finished = std::get_if<core::CommandFinished>(&event)) {
      ends.push_back(finished->ended - Simulation::kStart);
    }
  }
};

TEST(Simulation, RunsALaunchForExactlyItsTime) {
  Simulation sim(Free(), Build("round_robin"));
  Ends ends;
  sim.AddObserver(&ends);
  const SessionId a = sim.Open({});
  sim.Submit({.session = a, .recipe = OneLaunch(400us, false)});
  sim.RunUntil(Simulation::kStart + 1s);
  EXPECT_THAT(ends.ends, ::testing::ElementsAre(400us));
  EXPECT_EQ(sim.jobs_outstanding(), 0u);
}

TEST(Simulation, ChunksOfALaunchSumToIt) {
  Simulation sim(Free(), Build("round_robin"));
  Ends ends;
  sim.AddObserver(&ends);
  const SessionId a = sim.Open({});
  sim.Submit({.session = a, .recipe = OneLaunch(Duration(12'345'679))});
  sim.RunUntil(Simulation::kStart + 1s);
  EXPECT_GT(ends.ends.size(), 5u);
  EXPECT_EQ(ends.ends.back(), Duration(12'345'679));
}

std::uint64_t HashOfAStory(std::uint64_t seed) {
  SimulationOptions options;
  options.seed = seed;
  Simulation sim(options, Build("weighted_share"));
  Loop a, b;
  a.recipe = OneLaunch(3ms);
  b.recipe = OneLaunch(700us);
  a.session = sim.Open({.weight = 300});
  b.session = sim.Open({.weight = 100});
  sim.Submit({.session = a.session, .recipe = a.recipe, .client = &a});
  sim.Submit({.session = b.session, .recipe = b.recipe, .client = &b});
  sim.At(Simulation::kStart + 300ms, [&] { sim.Pause(a.session); });
  sim.At(Simulation::kStart + 400ms, [&] { sim.Resume(a.session); });
  sim.At(Simulation::kStart + 500ms,
         [&] { sim.SetPolicy("round_robin", "slice=1ms", Build("round_robin")); });
  sim.At(Simulation::kStart + 600ms, [&] { sim.LoseDevice(); });
  sim.At(Simulation::kStart + 700ms, [&] { sim.RestoreDevice(); });
  sim.At(Simulation::kStart + 800ms, [&] { sim.Close(b.session); });
  sim.RunUntil(Simulation::kStart + 900ms);
  EXPECT_GT(a.done, 10);
  return sim.hash();
}

TEST(Simulation, OneSeedIsOneHistory) {
  EXPECT_EQ(HashOfAStory(1), HashOfAStory(1));
  EXPECT_NE(HashOfAStory(1), HashOfAStory(2));
}

TEST(Simulation, AStuckCommandEndsWithTheDevice) {
  Simulation sim(Free(), Build("round_robin"));
  sim.SetFate([](Time, const core::StartCommand& order, Fate& fate) {
    fate.stuck = static_cast<std::uint64_t>(order.ticket) == 1;
  });
  Loop a;
  a.recipe = OneLaunch(100us, false);
  a.session = sim.Open({});
  sim.Submit({.session = a.session, .recipe = a.recipe, .client = &a});
  sim.RunUntil(Simulation::kStart + 1s);
  EXPECT_EQ(a.done + a.failed, 0);
  sim.LoseDevice();
  EXPECT_EQ(a.failed, 1);
  EXPECT_EQ(sim.device().in_flight(), 0u);
  sim.RunUntil(Simulation::kStart + 2s);
  EXPECT_EQ(a.done, 0);
  sim.RestoreDevice();
  sim.RunUntil(Simulation::kStart + 3s);
  EXPECT_GT(a.done, 1'000);
}

TEST(Simulation, AFailingCommandFailsItsJobOnly) {
  Simulation sim(Free(), Build("round_robin"));
  sim.SetFate([](Time, const core::StartCommand& order, Fate& fate) {
    fate.fails = static_cast<std::uint64_t>(order.ticket) % 2 == 1;
  });
  Loop a;
  a.recipe = OneLaunch(100us, false);
  a.session = sim.Open({});
  sim.Submit({.session = a.session, .recipe = a.recipe, .client = &a});
  sim.RunUntil(Simulation::kStart + 100ms);
  EXPECT_NEAR(a.done, a.failed, 1);
}

TEST(Simulation, AnInterruptedCommandIsStartedAgainWhereItStopped) {
  SimulationOptions options;
  options.costs = kNone;
  options.traits.can_interrupt = true;
  Simulation sim(options, Build("preemptive_priority"));
  Ends ends;
  sim.AddObserver(&ends);
  const SessionId low = sim.Open({.priority = 0}), high = sim.Open({.priority = 9});
  sim.Submit({.session = low, .recipe = OneLaunch(20ms)});
  // The probe takes 0.2 ms; the chunk after it is cut short here.
  sim.At(Simulation::kStart + 300us,
         [&] { sim.Submit({.session = high, .recipe = OneLaunch(100us, false)}); });
  sim.RunUntil(Simulation::kStart + 1s);
  EXPECT_EQ(sim.jobs_outstanding(), 0u);
  // A stopped block is done anew, so nothing of the sum is lost.
  EXPECT_GE(ends.ends.back(), 20ms + 100us);
  EXPECT_LE(ends.ends.back(), 20ms + 100us + 200us);
}

// A shim sees each fact and may keep orders back.
struct Counting : Shim {
  explicit Counting(int* counter) : facts(counter) {}
  void Handle(core::Scheduler& core, Time now, core::Event event) override {
    ++*facts;
    core.Handle(now, std::move(event));
  }
  int* facts;
};

TEST(Simulation, AShimStandsBetween) {
  int facts = 0;
  Simulation sim(Free(), Build("round_robin"), std::make_unique<Counting>(&facts));
  const SessionId a = sim.Open({});
  sim.Submit({.session = a, .recipe = OneLaunch(100us, false)});
  sim.RunUntil(Simulation::kStart + 1s);
  EXPECT_EQ(facts, 3);  // opened, submitted, finished
}

}  // namespace
}  // namespace gpusched::sim
