// Policies as transactions, and what happens to one that answers nonsense.
#include <utility>  // Boost 1.74's asio forgets it under C++20.

#include "control/policy_control.h"

#include <boost/asio/post.hpp>

#include "bench.h"
#include "gpusched/reasons.h"

namespace gpusched::control {
namespace {

// Runs a session that does not exist.
class Nonsense final : public Policy {
 public:
  ShareRule share_rule() const override { return ShareRule::kNone; }
  Decision Decide(const DecisionContext&) override {
    return Decision::Run({.slot = 99, .serial = 1'234'567}, std::chrono::milliseconds(1));
  }
};

PolicyRecord First() {
  PolicyRecord first = PolicyControl::Validate("round_robin", {}).value;
  first.source = "test";
  return first;
}

bool Eventually(const std::function<bool()>& holds) {
  const Time end = executor::Now() + executor::kSoon;
  while (!holds()) {
    if (executor::Now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(Policies, OneThatAnswersNonsenseIsEjectedAndTheWorkGoesOn) {
  boost::asio::io_context events;  // stands still until the ejection is looked for
  PolicyControl control(First(), events);
  std::atomic<bool> ejected{false};
  executor::Bench bench(
      std::make_unique<Nonsense>(), [&](std::uint32_t device, core::PolicyEjected what) {
        boost::asio::post(events, [&control, device, what] { control.Ejected(device, what); });
        ejected = true;
      });
  control.Govern({&bench.executor()});
  auto port = bench.Open();
  port->Say(bench.executor(), port, executor::Kernels(7),
            executor::JobOf(1, {executor::LaunchOf(7, "quick")}));
  const auto report = port->Take<executor::JobReport>();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome, executor::Outcome::kDone);
  ASSERT_TRUE(Eventually([&] { return ejected.load(); }));
  events.run();
  EXPECT_EQ(control.current().kind, "round_robin");
  EXPECT_EQ(control.current().generation, 2u);
  EXPECT_THAT(control.current().note, testing::HasSubstr("ejected"));
  // The next change is one generation on, and reaches the device.
  ASSERT_TRUE(
      control.Apply({.kind = "weighted_share", .parameters = {}, .etag = "", .source = "test"})
          .ok());
  EXPECT_EQ(control.current().generation, 3u);
  EXPECT_EQ(bench.executor().TakeSnapshot().status.policy.generation, 3u);
}

TEST(Policies, AChangeThatCrossedAnEjectionIsAppliedAgain) {
  boost::asio::io_context events;
  PolicyControl control(First(), events);
  executor::Bench bench(
      std::make_unique<Nonsense>(), [&](std::uint32_t device, core::PolicyEjected what) {
        boost::asio::post(events, [&control, device, what] { control.Ejected(device, what); });
      });
  control.Govern({&bench.executor()});
  auto port = bench.Open();
  port->Say(bench.executor(), port, executor::Kernels(7),
            executor::JobOf(1, {executor::LaunchOf(7, "quick")}));
  ASSERT_TRUE(port->Take<executor::JobReport>());  // ejected by now, and control does not know yet
  ASSERT_TRUE(
      control.Apply({.kind = "weighted_share", .parameters = {}, .etag = "", .source = "test"})
          .ok());
  events.run();
  EXPECT_EQ(control.current().kind, "weighted_share");
  EXPECT_EQ(bench.executor().TakeSnapshot().status.policy.kind, "weighted_share");
}

TEST(Policies, TheHistoryIsBoundedAndRollsBack) {
  boost::asio::io_context events;
  PolicyControl control(First(), events);
  executor::Bench bench;
  control.Govern({&bench.executor()});
  for (int i = 0; i < 150; ++i) {
    const std::string slice = std::to_string(i % 7 + 1) + "ms";
    ASSERT_TRUE(control
                    .Apply({.kind = "round_robin",
                            .parameters = {{"slice", slice}},
                            .etag = "",
                            .source = "test"})
                    .ok());
  }
  EXPECT_EQ(control.History().size(), PolicyControl::kHistory);
  EXPECT_EQ(control.RollBack(1, "test").fault.status.reason(), reason::kUnknownGeneration);
  const PolicyRecord target = control.History().at(10);
  const auto back = control.RollBack(target.generation, "test");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value.canonical, target.canonical);
  EXPECT_GT(back.value.generation, target.generation);
}

}  // namespace
}  // namespace gpusched::control
