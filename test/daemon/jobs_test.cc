// Jobs through the daemon: results, order, cancelling, templates, deadlines, windows.
#include <numeric>
#include <optional>

#include "fixture.h"

namespace gpusched::test {
namespace {

class Jobs : public WithDaemon {};

TEST_F(Jobs, BytesComeBackAsTheyWereWritten) {
  Start();
  Session session = Open({.memory = 64_MiB});
  const Module module = Load(session);
  // Longer than one piece of data, so that it crosses in several.
  std::vector<std::uint32_t> written(1'500'000), read(written.size());
  std::iota(written.begin(), written.end(), 7u);
  const Buffer buffer = Take(session.Allocate(written.size() * 4));
  Submission job = Take(session.Submit(
      Job().Write(buffer, written).Launch(module.kernel("quick"), {4}, {32}).Read(buffer, read)));
  const JobReport report = Take(job.Wait(kSoon));
  EXPECT_EQ(report.outcome, Outcome::kDone);
  EXPECT_GT(report.charged, 0ns);
  EXPECT_GE(report.ended, report.started);
  EXPECT_EQ(written, read);
}

TEST_F(Jobs, SeveralReadsOfOneJobFillTheirOwnPlaces) {
  Start();
  Session session = Open();
  const Buffer buffer = Take(session.Allocate(64));
  std::vector<char> first(16), second(32);
  Submission job = Take(session.Submit(Job()
                                           .Fill(buffer, 1, 16)
                                           .Fill(buffer, 2, 32, 16)
                                           .Read(buffer, first)
                                           .Read(buffer, second, 16)));
  Take(job.Wait(kSoon));
  EXPECT_THAT(first, testing::Each(1));
  EXPECT_THAT(second, testing::Each(2));
}

TEST_F(Jobs, JobsOfAQueueRunInOrder) {
  Start();
  Session session = Open();
  const Module module = Load(session);
  std::vector<Submission> jobs;
  for (int i = 0; i < 50; ++i) {
    jobs.push_back(Take(session.Submit(Job().Launch(module.kernel("quick"), {3}, {1}))));
  }
  Duration before{0};
  for (Submission& job : jobs) {
    const JobReport report = Take(job.Wait(kSoon));
    EXPECT_GE(report.started, before);
    before = report.ended;
  }
}

TEST_F(Jobs, AJobWaitsForTheModuleAndTheBufferItNames) {
  Start();
  Session session = Open();
  // Whatever the device takes for them, the job is not refused.
  const Module module = Load(session);
  const Buffer buffer = Take(session.Allocate(4'096));
  Submission job = Take(session.Submit(
      Job().Launch(module.kernel("scaled"), {2}, {8}, buffer, std::uint32_t{3}, Local{64})));
  EXPECT_EQ(Take(job.Wait(kSoon)).outcome, Outcome::kDone);
}

TEST_F(Jobs, ATemplateRunsWithOtherArgumentsAndBytes) {
  Start();
  Session session = Open();
  const Module module = Load(session);
  const Buffer buffer = Take(session.Allocate(8));
  std::uint64_t in = 1, out = 0;
  const Template shape = Take(session.RegisterTemplate(
      Job()
          .Write(buffer, &in, 8)
          .Launch(module.kernel("scaled"), {1}, {1}, buffer, std::uint32_t{1}, Local{8})
          .Read(buffer, &out, 8)));
  for (std::uint64_t i = 10; i < 20; ++i) {
    Submission job = Take(
        session.Submit(shape, Changes().Write(0, &i).Set(1, 1, static_cast<std::uint32_t>(i))));
    Take(job.Wait(kSoon));
    EXPECT_EQ(out, i);
  }
}

TEST_F(Jobs, ATemplateWritesItsOwnBytesUnlessTheyAreChanged) {
  Start();
  Session session = Open({.memory = 64_MiB});
  const Module module = Load(session);
  // The second is longer than one piece of data.
  constexpr std::size_t kLong = 100'000;
  const std::vector<std::uint32_t> few(25, 7), many(kLong, 8), other(kLong, 9);
  const Buffer small = Take(session.Allocate(few.size() * 4));
  const Buffer large = Take(session.Allocate(kLong * 4));
  std::vector<std::uint32_t> small_out(few.size()), large_out(kLong);
  std::optional<Template> shape;
  {
    std::vector<std::uint32_t> now_few = few, now_many = many;
    shape.emplace(Take(session.RegisterTemplate(Job()
                                                    .Write(small, now_few)
                                                    .Write(large, now_many)
                                                    .Launch(module.kernel("quick"), {1}, {1})
                                                    .Read(small, small_out)
                                                    .Read(large, large_out))));
    std::fill(now_few.begin(), now_few.end(), 0);
    std::fill(now_many.begin(), now_many.end(), 0);
  }
  const auto expect = [&](Submission job, const std::vector<std::uint32_t>& in_large) {
    std::fill(small_out.begin(), small_out.end(), 0);
    std::fill(large_out.begin(), large_out.end(), 0);
    EXPECT_EQ(Take(job.Wait(kSoon)).outcome, Outcome::kDone);
    EXPECT_EQ(small_out, few);
    EXPECT_EQ(large_out, in_large);
  };
  expect(Take(session.Submit(*shape)), many);
  expect(Take(session.Submit(*shape)), many);
  expect(Take(session.Submit(*shape, Changes().Write(1, other.data()))), other);
  expect(Take(session.Submit(*shape)), many);
}

TEST_F(Jobs, SubmissionsOfATemplateTakeTurnsInTheWindowOfBytes) {
  Start({.yaml = "version: 1\ndevice: {kind: virtual}\nsessions: {window_bytes: 1MiB}\n",
         .flags = {}});
  Session session = Open({.memory = 64_MiB});
  std::vector<std::byte> bytes(600 << 10, std::byte{5}), out(bytes.size());
  const Buffer buffer = Take(session.Allocate(bytes.size()));
  const Template shape = Take(session.RegisterTemplate(Job().Write(buffer, bytes)));
  std::vector<Submission> jobs;
  for (int i = 0; i < 20; ++i) jobs.push_back(Take(session.Submit(shape)));
  for (Submission& job : jobs) EXPECT_EQ(Take(job.Wait(kSoon)).outcome, Outcome::kDone);
  Submission read = Take(session.Submit(Job().Read(buffer, out)));
  Take(read.Wait(kSoon));
  EXPECT_EQ(out, bytes);
}

TEST_F(Jobs, CancellingEndsAWaitingAndARunningJob) {
  Start();
  Session session = Open();
  const Module module = Load(session);
  const auto endless = [&] { return Job().Launch(module.kernel("long"), {60'000}, {1}); };
  Submission running = Take(session.Submit(endless()));
  Submission waiting = Take(session.Submit(endless()));
  ASSERT_TRUE(Eventually([&] { return Take(admin_->Sessions()).at(0).jobs_running == 1; }));
  EXPECT_TRUE(waiting.Cancel().ok());
  EXPECT_TRUE(running.Cancel().ok());
  for (Submission* job : {&waiting, &running}) {
    const JobReport report = Take(job->Wait(kSoon));
    EXPECT_EQ(report.outcome, Outcome::kCancelled);
    EXPECT_EQ(report.why.reason(), reason::kCancelled);
  }
}

TEST_F(Jobs, AJobThatCannotBeOnTimeIsSkippedWhereItAsksForThat) {
  Start();
  Session session = Open();
  const Module module = Load(session);
  Submission first = Take(session.Submit(Job().Launch(module.kernel("whole"), {200}, {1})));
  Submission late = Take(session.Submit(Job().Launch(module.kernel("quick"), {1}, {1}),
                                        {.deadline = 1ms, .skip_if_late = true}));
  const JobReport report = Take(late.Wait(kSoon));
  EXPECT_EQ(report.outcome, Outcome::kSkipped);
  EXPECT_EQ(report.why.reason(), reason::kSkippedLate);
  EXPECT_TRUE(report.late);
  EXPECT_EQ(Take(first.Wait(kSoon)).outcome, Outcome::kDone);
}

TEST_F(Jobs, AFullWindowIsRefusedOrWaitedFor) {
  Start({.yaml = "version: 1\ndevice: {kind: virtual}\nsessions: {window_jobs: 4}\n", .flags = {}});
  Session session = Open();
  const Module module = Load(session);
  EXPECT_EQ(session.window().jobs, 4u);
  std::vector<Submission> jobs;
  for (int i = 0; i < 4; ++i) {
    jobs.push_back(Take(session.Submit(Job().Launch(module.kernel("whole"), {20}, {1}))));
  }
  const Job more = Job().Launch(module.kernel("quick"), {1}, {1});
  EXPECT_THAT(session.Submit(more, {.when_full = WhenFull::kFail}).status(),
              Refused("WINDOW_EXCEEDED"));
  Submission waited = Take(session.Submit(more));
  EXPECT_EQ(Take(waited.Wait(kSoon)).outcome, Outcome::kDone);
}

TEST_F(Jobs, QueuesAreIndependent) {
  Start();
  Session session = Open();
  const Module module = Load(session);
  const std::uint32_t other = Take(session.OpenQueue());
  Submission slow = Take(session.Submit(Job().Launch(module.kernel("long"), {60'000}, {1})));
  Submission fast = Take(session.Submit(Job().Launch(module.kernel("quick"), {1}, {1}),
                                        {.queue = other, .deadline = 10ms}));
  EXPECT_EQ(Take(fast.Wait(kSoon)).outcome, Outcome::kDone);
  EXPECT_FALSE(slow.Done());
  ASSERT_TRUE(slow.Cancel().ok());
  Take(slow.Wait(kSoon));
}

TEST_F(Jobs, AFailureOfTheDeviceIsTheJobsOwn) {
  Start();
  Session session = Open();
  const Module module = Load(session);
  Submission broken = Take(session.Submit(Job().Launch(module.kernel("broken"), {1}, {1})));
  EXPECT_THAT(broken.Wait(kSoon).status(), Refused("DEVICE_FAILED"));
  Submission next = Take(session.Submit(Job().Launch(module.kernel("quick"), {1}, {1})));
  EXPECT_EQ(Take(next.Wait(kSoon)).outcome, Outcome::kDone);
}

TEST_F(Jobs, AFreedBufferLivesUntilItsLastJob) {
  Start();
  Session session = Open();
  const Module module = Load(session);
  std::vector<char> out(64);
  Buffer buffer = Take(session.Allocate(64));
  Submission job = Take(session.Submit(
      Job().Launch(module.kernel("whole"), {20}, {1}).Fill(buffer, 9, 64).Read(buffer, out)));
  ASSERT_TRUE(buffer.Free().ok());
  EXPECT_EQ(Take(job.Wait(kSoon)).outcome, Outcome::kDone);
  EXPECT_THAT(out, testing::Each(9));
  EXPECT_TRUE(Eventually([&] { return Take(admin_->Sessions()).at(0).memory_bytes == 0; }));
}

TEST_F(Jobs, ASessionThatDrainsMayStillFreeCancelAndDrainAgain) {
  Start();
  Session session = Open();
  const Module module = Load(session);
  std::optional<Buffer> unused = Take(session.Allocate(64));
  Submission first = Take(session.Submit(Job().Launch(module.kernel("whole"), {200}, {1})));
  Submission second = Take(session.Submit(Job().Launch(module.kernel("whole"), {200}, {1})));
  EXPECT_THAT(session.Drain(1ms), Refused(reason::kWaitTimedOut));
  unused.reset();
  EXPECT_TRUE(second.Cancel().ok());
  EXPECT_THAT(session.Allocate(64).status(), Refused(reason::kSessionClosed));
  EXPECT_TRUE(session.Drain(kSoon).ok());
  EXPECT_EQ(Take(first.Wait(kSoon)).outcome, Outcome::kDone);
  EXPECT_EQ(Take(second.Wait(kSoon)).outcome, Outcome::kCancelled);
}

TEST_F(Jobs, ClosingASessionThatDrainsCancelsTheRest) {
  Start();
  Session session = Open();
  const Module module = Load(session);
  std::vector<Submission> jobs;
  for (int i = 0; i < 100; ++i) {
    jobs.push_back(Take(session.Submit(Job().Launch(module.kernel("whole"), {100}, {1}))));
  }
  EXPECT_THAT(session.Drain(1ms), Refused(reason::kWaitTimedOut));
  EXPECT_TRUE(session.Close().ok());
  EXPECT_THAT(jobs.back().Wait(kSoon).status(), Refused(reason::kSessionClosed));
}

TEST_F(Jobs, DrainFinishesWhatWasSubmitted) {
  Start();
  Session session = Open();
  const Module module = Load(session);
  Submission job = Take(session.Submit(Job().Launch(module.kernel("whole"), {50}, {1})));
  EXPECT_TRUE(session.Drain(kSoon).ok());
  EXPECT_EQ(Take(job.Wait(kSoon)).outcome, Outcome::kDone);
  EXPECT_TRUE(Eventually([&] { return Take(admin_->Sessions()).empty(); }));
}

}  // namespace
}  // namespace gpusched::test
