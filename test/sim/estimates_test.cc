// After a kernel's time changes by any factor the next chunks are right again, and only what was in
// flight together when it was first seen passes the preemption bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "catalog.h"
#include "sim/checker.h"
#include "sim/simulation.h"

namespace gpusched::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Times of commands as the device reports them, and what was charged for them in all.
class Chunks final : public Observer {
 public:
  void OnEvent(Time, const core::Event& event) override {
    const auto* finished = std::get_if<core::CommandFinished>(&event);
    if (finished != nullptr) took.push_back(finished->ended - finished->started);
  }
  std::vector<Duration> took;
};

// Submits the next job of a kernel whenever one has ended.
class Loop final : public Client {
 public:
  void JobEnded(Simulation& simulation, const core::Job& job, core::JobOutcome,
                const Status&) override {
    simulation.Submit({.session = job.session, .recipe = recipe, .client = this});
  }
  std::shared_ptr<const Recipe> recipe;
};

// `from` to `to`: the time of a block of one kernel, before and after.
void ExpectRightAfterAChange(Duration from, Duration to) {
  SCOPED_TRACE(std::to_string(from.count()) + " ns to " + std::to_string(to.count()) + " ns");
  constexpr std::uint64_t kBlocks = 100'000, kKernel = 7;
  SimulationOptions options;
  options.costs.launch_gap = options.costs.chunk = options.costs.session_switch = Duration(0);
  options.costs.noise_ppb = options.costs.outlier_ppb = 0;
  options.policy.kind = "round_robin";
  std::unique_ptr<Policy> policy = FallbackPolicy();
  Checker checker({.limits = options.limits,
                   .preemption_bound = options.traits.preemption_bound,
                   .shortest_useful_chunk = options.traits.shortest_useful_chunk,
                   .policy = options.policy,
                   .share_rule = policy->share_rule()});
  Chunks chunks;
  Simulation simulation(options, std::move(policy));
  simulation.AddObserver(&checker);
  simulation.AddObserver(&chunks);
  Loop loop;
  loop.recipe = std::make_shared<Recipe>(Recipe{LaunchOf(from * kBlocks, kBlocks, kKernel)});
  Duration block = from;
  simulation.SetFate([&](Time, const core::StartCommand& order, Fate& fate) {
    fate.work = block * static_cast<std::int64_t>(order.count);
  });
  simulation.Submit({.session = simulation.Open({}), .recipe = loop.recipe, .client = &loop});
  simulation.RunUntil(Simulation::kStart + milliseconds(50));
  const Duration bound = options.traits.preemption_bound;
  ASSERT_FALSE(chunks.took.empty());

  // From the next command that starts on.
  const std::size_t in_flight = simulation.device().in_flight();
  const std::size_t before = chunks.took.size() + in_flight;
  block = to;
  while (chunks.took.size() < before + 12) ASSERT_TRUE(simulation.Step(kNever - Duration(1)));
  int beyond = 0;
  for (std::size_t i = before; i < chunks.took.size(); ++i) beyond += chunks.took[i] > bound;
  // Two of half a bound are in flight at once: both were cut before the change was seen.
  EXPECT_LE(beyond, 2);
  const std::size_t right_from = before + 3;
  for (std::size_t i = right_from; i < chunks.took.size(); ++i) {
    EXPECT_LE(chunks.took[i], bound / 2) << "command " << i - before;
    if (to * kBlocks > bound) {
      EXPECT_GE(chunks.took[i], bound / 4) << "command " << i - before;
    }
  }
  EXPECT_TRUE(checker.violations().empty()) << checker.violations().front().Text();
}

TEST(EstimatesTest, AChangeByAnyFactorIsRightWithinThreeCommands) {
  for (const int factor : {3, 10, 100, 1'000}) {
    ExpectRightAfterAChange(Duration(200), Duration(200) * factor);
    ExpectRightAfterAChange(Duration(200) * factor, Duration(200));
  }
}

}  // namespace
}  // namespace gpusched::sim
