// What a session's messages do, one executor and no network.
#include "bench.h"
#include "gpusched/reasons.h"

namespace gpusched::executor {
namespace {

using testing::HasSubstr;

TEST(AnExecutor, RunsAJobThatCameWithItsHelloAndModule) {
  Bench bench;
  auto port = std::make_shared<TestPort>();
  bench.executor().Reserve(1 << 20);
  Hello hello;
  hello.memory_bytes = 1 << 20;
  port->Say(bench.executor(), port, std::move(hello), Kernels(7), JobOf(1, {LaunchOf(7, "quick")}));
  ASSERT_TRUE(port->Take<Welcome>());
  ASSERT_TRUE(port->Take<ModuleLoaded>());
  const auto report = port->Take<JobReport>();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome, Outcome::kDone) << report->error.ToString();
}

TEST(AnExecutor, HoldsLaterJobsOfAQueueBehindOneThatWaitsForItsModule) {
  Bench bench;
  auto port = bench.Open();
  port->Say(bench.executor(), port, Allocate{1, 64}, Kernels(7), JobOf(1, {LaunchOf(7, "quick")}),
            JobOf(2, {Fill{1, 0, 64, 1}}));
  const auto first = port->Take<JobReport>(), second = port->Take<JobReport>();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->job, 1u);
  EXPECT_EQ(second->job, 2u);
}

TEST(AnExecutor, RefusesAJobWhoseModuleDidNotBuildAndSaysWhy) {
  Bench bench;
  auto port = bench.Open();
  port->Say(bench.executor(), port, LoadModule{3, {{device::Image::Format::kVirtual, "nonsense"}}},
            JobOf(1, {LaunchOf(3, "quick")}));
  const auto report = port->Take<JobReport>();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome, Outcome::kRefused);
  EXPECT_EQ(report->error.reason(), reason::kDependencyFailed);
  // The id may be tried again.
  port->Say(bench.executor(), port, Kernels(3), JobOf(2, {LaunchOf(3, "quick")}));
  const auto again = port->Take<JobReport>();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->outcome, Outcome::kDone) << again->error.ToString();
}

TEST(AnExecutor, RefusesATemplateThatNamesAFreedBuffer) {
  Bench bench;
  auto port = bench.Open();
  Submit by_template;
  by_template.job = 1;
  by_template.template_id = 5;
  port->Say(bench.executor(), port, Allocate{1, 64}, RegisterTemplate{5, {Fill{1, 0, 64, 1}}},
            by_template);
  const auto done = port->Take<JobReport>();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->outcome, Outcome::kDone) << done->error.ToString();
  by_template.job = 2;
  port->Say(bench.executor(), port, executor::Free{1}, by_template);
  const auto refused = port->Take<JobReport>();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->error.reason(), reason::kUnknownBuffer);
}

TEST(AnExecutor, HoldsResultsBackFromAClientThatDoesNotTakeThem) {
  Bench bench;
  auto port = bench.Open();
  const std::uint64_t bytes = kResultWindow / 2 + 1;
  port->Say(bench.executor(), port, Allocate{1, bytes}, JobOf(1, {CopyOut{1, 0, bytes}}),
            JobOf(2, {CopyOut{1, 0, bytes}}));
  ASSERT_TRUE(port->Take<JobReport>());
  EXPECT_EQ(bench.executor().TakeSnapshot().sessions.at(0).status.jobs_waiting, 1u);
  EXPECT_EQ(port->Count<JobReport>(), 0u);
  bench.executor().Bring(ResultsSent{port, bytes});
  const auto second = port->Take<JobReport>();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->job, 2u);
}

TEST(AnExecutor, CancelsAHeldJobAndItsQueuesJobs) {
  Bench bench;
  auto port = bench.Open();
  Submit other = JobOf(3, {LaunchOf(7, "quick")});
  other.queue = 2;
  const std::uint64_t bytes = kResultWindow / 2 + 1;
  port->Say(bench.executor(), port, Kernels(7), Allocate{1, bytes}, OpenQueue{2},
            JobOf(1, {CopyOut{1, 0, bytes}}), JobOf(2, {CopyOut{1, 0, bytes}}));
  ASSERT_TRUE(port->Take<JobReport>());  // the second waits for the first's result to be read
  port->Say(bench.executor(), port, Cancel{2});
  const auto cancelled = port->Take<JobReport>();
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->outcome, Outcome::kCancelled);
  port->Say(bench.executor(), port, CloseQueue{2}, other);
  const auto refused = port->Take<JobReport>();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->error.reason(), reason::kUnknownQueue);
}

TEST(AnExecutor, EndsAfterGoodbyeWithTheLastJob) {
  Bench bench;
  auto port = bench.Open();
  port->Say(bench.executor(), port, Kernels(7), JobOf(1, {LaunchOf(7, "long", 3)}), Goodbye{});
  const auto report = port->Take<JobReport>();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->outcome, Outcome::kDone);
  const auto ended = port->Take<Ended>();
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->why.ok());
  EXPECT_TRUE(bench.AwaitEmpty());
  EXPECT_EQ(bench.executor().load().memory_bytes, 0u);
}

TEST(AnExecutor, LeavesNothingOfABrokenStream) {
  Bench bench;
  for (int i = 0; i < 50; ++i) {
    auto port = bench.Open();
    port->Say(bench.executor(), port, Kernels(7), Allocate{1, 4'096},
              JobOf(1, {LaunchOf(7, "quick", 100)}), JobOf(2, {LaunchOf(7, "quick", 100)}));
    bench.executor().Bring(
        StreamClosed{port, Status(StatusCode::kCancelled, "SESSION_CLOSED", "broke")});
  }
  EXPECT_TRUE(bench.AwaitEmpty());
  EXPECT_EQ(bench.executor().load().with_work, 0u);
  EXPECT_EQ(bench.executor().load().memory_bytes, 0u);
}

TEST(AnExecutor, RefusesNewWorkWhileItDrains) {
  Bench bench;
  auto port = bench.Open();
  port->Say(bench.executor(), port, Kernels(7), JobOf(1, {LaunchOf(7, "long", 5)}));
  bench.executor().Drain(Status(StatusCode::kUnavailable, reason::kDraining, "stopping"));
  auto late = bench.Open();
  const auto refused = late->Take<Ended>();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->why.reason(), reason::kDraining);
  const auto done = port->Take<JobReport>();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->outcome, Outcome::kDone);
  EXPECT_TRUE(bench.AwaitEmpty());
}

TEST(AnExecutor, BoundsWhatOneJobMayAskFor) {
  Bench bench;
  Hello hello;
  hello.memory_bytes = std::uint64_t{2} << 30;
  auto port = bench.Open(std::move(hello));
  port->Say(bench.executor(), port, Allocate{1, kResultBytesPerJob + 1},
            JobOf(1, {CopyOut{1, 0, kResultBytesPerJob + 1}}),
            JobOf(2, std::vector<Operation>(core::Limits{}.operations_per_job + 1,
                                            Operation(Fill{1, 0, 1, 0}))));
  const auto large = port->Take<JobReport>(), long_one = port->Take<JobReport>();
  ASSERT_TRUE(large && long_one);
  EXPECT_EQ(large->error.reason(), reason::kStagingExceeded);
  EXPECT_EQ(long_one->error.reason(), reason::kTooMany);
}

TEST(AnExecutor, HandlesALongFrameInOrderThoughNotAtOnce) {
  Bench bench;
  auto port = bench.Open();
  for (std::uint64_t id = 1; id <= 2'000; ++id) {
    port->frame.messages.emplace_back(JobOf(id, {}));
  }
  port->Say(bench.executor(), port, Goodbye{});
  for (std::uint64_t id = 1; id <= 2'000; ++id) {
    const auto report = port->Take<JobReport>();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->job, id);
  }
  EXPECT_TRUE(port->Take<Ended>());
}

TEST(AnExecutor, ManyThreadsBringAndEveryJobIsReportedOnce) {
  Bench bench;
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      auto port = bench.Open();
      port->Say(bench.executor(), port, Kernels(7));
      for (std::uint64_t id = 1; id <= 200; ++id) {
        port->Say(bench.executor(), port, JobOf(id, {LaunchOf(7, "quick", 4)}));
        const auto report = port->Take<JobReport>();
        ASSERT_TRUE(report);
        EXPECT_EQ(report->job, id);
        EXPECT_EQ(report->outcome, Outcome::kDone);
      }
      EXPECT_EQ(port->Count<JobReport>(), 0u);
    });
  }
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace gpusched::executor
