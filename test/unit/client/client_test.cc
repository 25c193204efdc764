// What the client library promises, against a stand-in for the daemon.
#include "gpusched/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "fake_daemon.h"
#include "gpusched/utf8.h"

namespace gpusched::test {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kBytes = 64;

// A session with a module of two kernels and one buffer.
struct Fixture {
  explicit Fixture(FakeDaemonOptions options = {}) : daemon(std::move(options)) {
    client = *Client::Connect({.endpoint = daemon.endpoint()});
    session = *client->OpenSession({.name = "test"});
    module = *session->LoadModule({.virtual_text = "scale\nsum"});
    buffer = *session->Allocate(kBytes);
  }
  Job OneLaunch() const { return Job().Launch(module->kernel("scale"), {1}, {64}, *buffer, 2.0f); }

  FakeDaemon daemon;
  std::optional<Client> client;
  std::optional<Session> session;
  std::optional<Module> module;
  std::optional<Buffer> buffer;
};

std::vector<std::byte> Pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((i * 2'654'435'761u + seed) >> 13);
  }
  return bytes;
}

// Something threads wait for.
class Event {
 public:
  void Set() {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool Await() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, 30s, [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

TEST(Connect, NobodyThereIsTyped) {
  const auto client = Client::Connect({.endpoint = "unix:/nonexistent/x.sock", .retry_for = 0s});
  EXPECT_EQ(client.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(client.status().reason(), reason::kDaemonUnreachable);
}

TEST(Connect, TriesAgainUntilTheDaemonIsThere) {
  std::optional<FakeDaemon> first(std::in_place);
  const std::string endpoint = first->endpoint();
  first->Vanish();
  std::optional<FakeDaemon> second;
  std::thread starter([&] { second.emplace(FakeDaemonOptions{.endpoint = endpoint}); });
  const auto client = Client::Connect({.endpoint = endpoint, .retry_for = 30s});
  starter.join();
  ASSERT_TRUE(client.ok()) << client.status().ToString();
  EXPECT_TRUE(client->OpenSession().ok());
}

TEST(OpenSession, RefusalIsItsError) {
  FakeDaemon daemon({.refuse_hello = Status(StatusCode::kFailedPrecondition,
                                            reason::kMinOversubscribed, "the sum would be 1.2")});
  const auto client = Client::Connect({.endpoint = daemon.endpoint()});
  const auto session = client->OpenSession({.share = {.min = 0.5}});
  EXPECT_EQ(session.status().reason(), reason::kMinOversubscribed);
  EXPECT_THAT(session.status().message(), HasSubstr("1.2"));
}

TEST(OpenSession, WhatTheWireCannotCarryIsRefusedHere) {
  FakeDaemon daemon;
  const auto client = Client::Connect({.endpoint = daemon.endpoint()});
  EXPECT_EQ(client->OpenSession({.share = {.weight = 0}}).status().reason(), reason::kBadShare);
  EXPECT_EQ(client->OpenSession({.share = {.max = 0}}).status().reason(), reason::kBadShare);
}

// What stands beside each: RFC 3629, sections 3 and 4.
TEST(Text, OnlyUtf8IsUtf8) {
  for (const char* good : {"", "plain", "gr\xC3\xBC\xC3\x9F", "\xE2\x82\xAC", "\xED\x9F\xBF",
                           "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_FALSE(FirstNotUtf8(good)) << good;
  }
  for (const char* bad : {"ab\xFF", "ab\x80" /* no lead */, "ab\xC0\xAF" /* overlong */,
                          "ab\xE0\x9F\xBF" /* overlong */, "ab\xF0\x8F\xBF\xBF" /* overlong */,
                          "ab\xED\xA0\x80" /* surrogate */, "ab\xF4\x90\x80\x80" /* U+110000 */,
                          "ab\xE2\x82" /* torn */, "ab\xE2\x82g"}) {
    EXPECT_EQ(FirstNotUtf8(bad), std::size_t{2}) << bad;
  }
}

TEST(OpenSession, TextThatIsNotUtf8IsRefusedHereAndNamed) {
  FakeDaemon daemon;
  const auto client = Client::Connect({.endpoint = daemon.endpoint()});
  const Status name = client->OpenSession({.name = "a\xFF"}).status();
  EXPECT_EQ(name.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(name.message(), HasSubstr("SessionOptions::name is not UTF-8 from its byte 1"));
  const Status device = client->OpenSession({.device = "\xFE"}).status();
  EXPECT_EQ(device.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(device.message(), HasSubstr("SessionOptions::device"));
  EXPECT_TRUE(client->OpenSession({.name = "gr\xC3\xBC\xC3\x9F"}).ok());
}

TEST(Submit, TextThatIsNotUtf8IsRefusedAndTheSessionGoesOn) {
  Fixture f({.window_jobs = 1});
  const Template once = *f.session->RegisterTemplate(f.OneLaunch());
  for (const Status& status : {f.session->Submit(f.OneLaunch(), {.tag = "bad\xff\xfetag"}).status(),
                               f.session->Submit(once, {.tag = "bad\xff\xfetag"}).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.reason(), reason::kBadParameter);
    EXPECT_THAT(status.message(), HasSubstr("SubmitOptions::tag is not UTF-8 from its byte 3"));
  }
  EXPECT_FALSE(f.session->Submit(Job().Launch("sca\xFF", {1}, {1})).ok());
  // The only place in the window is free.
  auto job = f.session->Submit(f.OneLaunch(), {.tag = "gr\xC3\xBC", .when_full = WhenFull::kFail});
  ASSERT_TRUE(job.ok()) << job.status().ToString();
  EXPECT_TRUE(job->Wait().ok());
}

// As module.h has it: 2 MiB - 128 bytes of images fit a frame, however many images they are.
TEST(LoadModule, ImagesFillAFrameAndNoMore) {
  Fixture f;
  const std::string piece(((2 << 20) - 128) / 6, 'x');
  EXPECT_TRUE(f.session
                  ->LoadModule({.source = piece,
                                .cuda_source = piece,
                                .ptx = piece,
                                .cubin = piece,
                                .fatbin = piece,
                                .virtual_text = piece})
                  .ok());
  const std::string whole(2 << 20, 'x');
  EXPECT_EQ(f.session->LoadModule({.virtual_text = whole}).status().reason(),
            reason::kFrameTooLarge);
  EXPECT_TRUE(f.session->LoadModule({.source = std::string((2 << 20) - 128, 'x')}).ok());
}

TEST(OpenSession, TooLargeAGreetingIsRefusedHere) {
  FakeDaemon daemon;
  const auto client = Client::Connect({.endpoint = daemon.endpoint()});
  const auto session = client->OpenSession({.name = std::string(3 << 20, 'x')});
  EXPECT_EQ(session.status().reason(), reason::kFrameTooLarge);
}

TEST(OpenSession, TellsWhatWasGranted) {
  Fixture f({.window_jobs = 5, .window_bytes = 1'000, .memory = 4'096});
  EXPECT_EQ(f.session->id(), 1u);
  EXPECT_EQ(f.session->device().uuid, "fake-0");
  EXPECT_EQ(f.session->window().jobs, 5u);
  EXPECT_EQ(f.session->window().bytes, 1'000u);
  EXPECT_EQ(f.session->memory(), 4'096u);
  EXPECT_EQ(f.session->share().weight, 100);
}

TEST(Submit, ReportTellsWhereTheTimeWent) {
  Fixture f;
  auto job = f.session->Submit(f.OneLaunch());
  ASSERT_TRUE(job.ok()) << job.status().ToString();
  const auto report = job->Wait();
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(report->outcome, Outcome::kDone);
  EXPECT_GT(report->in_client, 0ms);
  EXPECT_EQ(report->queued, std::chrono::nanoseconds(1'000));
  EXPECT_EQ(report->run, std::chrono::nanoseconds(2'000));
  EXPECT_EQ(report->generation, 7u);
  EXPECT_EQ(report->total, report->in_client + report->queued + report->run + report->returned);
}

TEST(Submit, OptionsReachTheDaemon) {
  Fixture f;
  const auto queue = f.session->OpenQueue();
  auto job = f.session->Submit(
      f.OneLaunch(), {.queue = *queue, .deadline = 5ms, .tag = "frame 7", .skip_if_late = true});
  ASSERT_TRUE(job->Wait().ok());
  const SeenJob seen = f.daemon.jobs().at(0);
  EXPECT_EQ(seen.queue, *queue);
  EXPECT_EQ(seen.deadline, 5ms);
  EXPECT_EQ(seen.tag, "frame 7");
  EXPECT_TRUE(seen.skip_if_late);
  EXPECT_EQ(seen.first_kernel, "scale");
}

// Each way to write a launch, on a job that stays and on one that passes by.
TEST(Submit, LaunchesAreToldByBlocksOrByThreads) {
  Fixture f;
  const Kernel sum = f.module->kernel("sum");
  const NdRange range{.threads = {640, 3}, .block = {64}, .offset = {5}};
  Job staying;
  staying.Launch(sum, range)
      .Launch("sum", range)
      .LaunchWith(sum, range, {})
      .LaunchWith("sum", range, {});
  staying.LaunchWith(sum, {10}, {64}, {}).LaunchWith("sum", {10}, {64}, {});
  ASSERT_TRUE(f.session->Submit(staying)->Wait().ok());
  for (const Job& passing :
       {Job().Launch(sum, range), Job().Launch("sum", range), Job().LaunchWith(sum, range, {}),
        Job().LaunchWith("sum", range, {Argument(1)}), Job().LaunchWith(sum, {10}, {64}, {}),
        Job().LaunchWith("sum", {10}, {64}, {Argument(1)}),
        Job().Launch(sum, NdRange{.threads = {7}})}) {
    EXPECT_EQ(passing.size(), 1u);
    ASSERT_TRUE(f.session->Submit(passing)->Wait().ok());
  }
  const std::vector<SeenJob> jobs = f.daemon.jobs();
  ASSERT_EQ(jobs.size(), 8u);
  EXPECT_EQ(jobs[0].operations, 6);
  for (std::size_t i = 1; i <= 4; ++i) {
    const v1::Launch& seen = jobs[i].first_launch;
    EXPECT_FALSE(seen.has_grid() || seen.has_block());
    EXPECT_EQ(seen.range().threads().x(), 640u);
    EXPECT_EQ(seen.range().threads().y(), 3u);
    EXPECT_EQ(seen.range().threads().z(), 1u);
    EXPECT_EQ(seen.range().block().x(), 64u);
    EXPECT_EQ(seen.range().offset().x(), 5u);
    EXPECT_EQ(seen.range().offset().y(), 0u);
    EXPECT_EQ(seen.arguments_size(), i == 4 ? 1 : 0);
  }
  for (std::size_t i = 5; i <= 6; ++i) {
    EXPECT_FALSE(jobs[i].first_launch.has_range());
    EXPECT_EQ(jobs[i].first_launch.grid().x(), 10u);
    EXPECT_EQ(jobs[i].first_launch.block().x(), 64u);
  }
  EXPECT_EQ(jobs[7].first_launch.range().block().x(), 0u) << "the device chooses";
}

TEST(Submit, GetsOutThoughNobodyWaits) {
  Fixture f({.hold_jobs = true});
  std::vector<Submission> jobs;
  for (int i = 0; i < 100; ++i) jobs.push_back(*f.session->Submit(f.OneLaunch()));
  EXPECT_TRUE(f.daemon.AwaitJobs(100));
}

TEST(Submit, BytesComeBackAsTheyWent) {
  Fixture f;
  // More than a piece, more than a frame, and no multiple of either.
  const auto bytes = Pattern((3 << 20) + 17, 1);
  auto big = f.session->Allocate(bytes.size());
  std::vector<std::byte> first(1'000), rest(bytes.size() - 1'000);
  auto job =
      f.session->Submit(Job().Write(*big, bytes).Read(*big, first).Read(*big, rest, first.size()));
  ASSERT_TRUE(job->Wait().ok());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), bytes.begin()));
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), bytes.begin() + 1'000));
}

TEST(Submit, WriteTakesItsBytesBeforeItReturns) {
  Fixture f({.hold_jobs = true});
  std::vector<std::uint8_t> bytes(kBytes, 1), out(kBytes);
  auto job = f.session->Submit(Job().Write(*f.buffer, bytes).Read(*f.buffer, out));
  std::fill(bytes.begin(), bytes.end(), 2);
  ASSERT_TRUE(f.daemon.AwaitJobs(1));
  f.daemon.Release(1);
  ASSERT_TRUE(job->Wait().ok());
  EXPECT_THAT(out, ::testing::Each(1));
}

TEST(Submit, FillSetsEveryByte) {
  Fixture f;
  std::vector<std::uint8_t> out(kBytes);
  auto job = f.session->Submit(Job().Fill(*f.buffer, 0xab, kBytes).Read(*f.buffer, out));
  ASSERT_TRUE(job->Wait().ok());
  EXPECT_THAT(out, ::testing::Each(0xab));
}

TEST(Submit, FailureIsAStatusCancellationAReport) {
  Fixture failing({.fail_jobs = Status(StatusCode::kInternal, reason::kDeviceFailed, "it broke")});
  const auto failed = failing.session->Submit(failing.OneLaunch())->Wait();
  EXPECT_EQ(failed.status().reason(), reason::kDeviceFailed);

  Fixture f({.hold_jobs = true});
  auto job = f.session->Submit(f.OneLaunch());
  ASSERT_TRUE(job->Cancel().ok());
  ASSERT_TRUE(f.daemon.AwaitMessage("cancel"));
  f.daemon.Release(1);
  const auto report = job->Wait();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->outcome, Outcome::kCancelled);
  EXPECT_EQ(report->why.reason(), reason::kCancelled);
}

TEST(Submit, EmptyAndBytelessJobsAreRefusedAtTheCall) {
  Fixture f;
  EXPECT_EQ(f.session->Submit(Job()).status().reason(), reason::kEmptyJob);
  std::vector<int> none;
  EXPECT_EQ(f.session->Submit(Job().Write(*f.buffer, none)).status().reason(),
            reason::kOutOfBounds);
  EXPECT_EQ(f.session->Submit(Job().Read(*f.buffer, nullptr, 4)).status().reason(),
            reason::kOutOfBounds);
}

TEST(Submit, TooLargeAMessageIsRefusedAtTheCall) {
  Fixture f;
  Job job;
  const std::array<char, 1'000> argument{};
  for (int i = 0; i < 3'000; ++i) job.Launch(f.module->kernel("sum"), {1}, {1}, argument);
  EXPECT_EQ(f.session->Submit(job).status().reason(), reason::kFrameTooLarge);
  EXPECT_TRUE(f.session->Submit(f.OneLaunch())->Wait().ok());
}

TEST(Submit, ThingsOfAnotherSessionAreRefused) {
  Fixture f;
  auto other = f.client->OpenSession({.name = "other"});
  EXPECT_EQ(other->Submit(Job().Fill(*f.buffer, 0, 1)).status().reason(), reason::kUnknownBuffer);
  EXPECT_EQ(other->Submit(f.OneLaunch()).status().reason(), reason::kUnknownModule);
  auto made = f.session->RegisterTemplate(f.OneLaunch());
  EXPECT_EQ(other->Submit(*made).status().reason(), reason::kUnknownTemplate);
}

TEST(Kernels, AreFoundByNameWhereOneModuleHasThem) {
  Fixture f;
  EXPECT_TRUE(f.session->Submit(Job().Launch("sum", {1}, {1}))->Wait().ok());
  EXPECT_EQ(f.session->Submit(Job().Launch("product", {1}, {1})).status().reason(),
            reason::kUnknownKernel);
  const auto unknown = f.session->Submit(Job().Launch(f.module->kernel("product"), {1}, {1}));
  EXPECT_EQ(unknown.status().reason(), reason::kUnknownKernel);
  EXPECT_THAT(unknown.status().message(), HasSubstr("scale, sum"));
  auto second = f.session->LoadModule({.virtual_text = "sum"});
  EXPECT_EQ(f.session->Submit(Job().Launch("sum", {1}, {1})).status().reason(),
            reason::kAmbiguousName);
}

TEST(Kernels, BuildErrorsComeWithTheCompilersWords) {
  Fixture f;
  const auto module = f.session->LoadModule({.source = "bad"});
  EXPECT_EQ(module.status().reason(), reason::kBuildFailed);
  EXPECT_THAT(module.status().message(), HasSubstr("line 1"));
  EXPECT_EQ(f.session->LoadModule({}).status().reason(), reason::kBadModule);
  EXPECT_EQ(f.module->build_log(), "fine");
}

TEST(Kernels, KeepTheirModuleLoaded) {
  Fixture f;
  {
    std::optional<Kernel> kernel(f.module->kernel("sum"));
    f.module.reset();
    EXPECT_TRUE(f.session->Submit(Job().Launch(*kernel, {1}, {1}))->Wait().ok());
    EXPECT_THAT(f.daemon.messages(), ::testing::Not(::testing::Contains("unload")));
  }
  EXPECT_TRUE(f.daemon.AwaitMessage("unload"));
}

TEST(Allocate, RefusalIsTheCallsError) {
  Fixture f({.memory = 4'096});
  EXPECT_EQ(f.session->Allocate(4'097).status().reason(), reason::kQuotaExceeded);
}

TEST(Allocate, HandleFreesItsBuffer) {
  Fixture f;
  f.buffer.reset();
  EXPECT_TRUE(f.daemon.AwaitMessage("free"));
}

TEST(Templates, AreSubmittedByNumberWithChanges) {
  Fixture f;
  const auto bytes = Pattern(kBytes, 1), changed = Pattern(kBytes, 2);
  std::vector<std::byte> out(kBytes), elsewhere(kBytes);
  auto made = f.session->RegisterTemplate(
      Job().Write(*f.buffer, bytes).Launch("scale", {1}, {1}, *f.buffer, 1).Read(*f.buffer, out));
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  ASSERT_TRUE(f.session->Submit(*made)->Wait().ok());
  EXPECT_EQ(out, bytes);
  auto job = f.session->Submit(
      *made, Changes().Write(0, changed.data()).Set(1, 1, 7).Read(2, elsewhere.data()));
  ASSERT_TRUE(job->Wait().ok());
  EXPECT_EQ(elsewhere, changed);
  EXPECT_EQ(out, bytes);
  const auto jobs = f.daemon.jobs();
  EXPECT_EQ(jobs.at(0).operations, 0);
  EXPECT_EQ(jobs.at(0).changes, 1);  // the template's own bytes
  EXPECT_EQ(jobs.at(1).changes, 2);
  EXPECT_EQ(f.session->Submit(*made, Changes().Set(0, 0, 1)).status().reason(),
            reason::kOutOfBounds);
  EXPECT_EQ(f.session->Submit(*made, Changes().Write(3, out.data())).status().reason(),
            reason::kOutOfBounds);
}

TEST(Templates, KeepTheBytesOfTheirWrites) {
  Fixture f;
  const auto first = Pattern(kBytes / 2, 1), second = Pattern(kBytes / 2, 2);
  const auto changed = Pattern(kBytes / 2, 3);
  std::vector<std::byte> out(kBytes);
  auto both = [](const auto& a, const auto& b) {
    auto joined = a;
    joined.insert(joined.end(), b.begin(), b.end());
    return joined;
  };
  std::optional<Template> made;
  {
    auto a = first, b = second;
    made.emplace(*f.session->RegisterTemplate(Job()
                                                  .Write(*f.buffer, a)
                                                  .Fill(*f.buffer, 0, 1)
                                                  .Write(*f.buffer, a)
                                                  .Write(*f.buffer, b, kBytes / 2)
                                                  .Read(*f.buffer, out)));
    std::fill(a.begin(), a.end(), std::byte{0});
    std::fill(b.begin(), b.end(), std::byte{0});
  }
  EXPECT_THAT(f.daemon.messages(), ::testing::Not(::testing::Contains("data")));
  const auto result = [&](Result<Submission> job) {
    EXPECT_TRUE(job.ok()) << job.status().ToString();
    const auto report = job->Wait();
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    const auto read = out;
    std::fill(out.begin(), out.end(), std::byte{0});
    return read;
  };
  EXPECT_EQ(result(f.session->Submit(*made)), both(first, second));
  EXPECT_EQ(result(f.session->Submit(*made)), both(first, second));
  EXPECT_EQ(result(f.session->Submit(*made, Changes().Write(3, changed.data()))),
            both(first, changed));
  // Of two for one operation the last counts.
  EXPECT_EQ(
      result(f.session->Submit(*made, Changes().Write(2, second.data()).Write(2, changed.data()))),
      both(changed, second));
  EXPECT_EQ(result(f.session->Submit(*made)), both(first, second));
}

TEST(Templates, TheirBytesCountInTheWindowOnlyWhileSubmitted) {
  Fixture f({.window_bytes = 100, .hold_jobs = true});
  const std::vector<std::byte> most(60), large(101);
  auto big = f.session->Allocate(1'000);
  EXPECT_EQ(f.session->RegisterTemplate(Job().Write(*big, large)).status().reason(),
            reason::kStagingExceeded);
  auto made = f.session->RegisterTemplate(Job().Write(*big, most));
  auto more = f.session->RegisterTemplate(Job().Write(*big, most));  // none is outstanding
  std::promise<Status> called_back;
  auto a = f.session->Submit(
      *made, {.on_done = [&](const auto& report) { called_back.set_value(report.status()); }});
  ASSERT_TRUE(f.daemon.AwaitJobs(1));
  EXPECT_EQ(f.session->Submit(*more, {.when_full = WhenFull::kFail}).status().reason(),
            reason::kStagingExceeded);
  { const Template dropped = *std::move(made); }
  f.daemon.Release(1);
  EXPECT_TRUE(a->Wait().ok());
  EXPECT_TRUE(called_back.get_future().get().ok());
  auto b =
      f.session->Submit(*more, Changes().Write(0, large.data()), {.when_full = WhenFull::kFail});
  ASSERT_TRUE(f.daemon.AwaitJobs(2));
  f.daemon.Release(1);
  EXPECT_TRUE(b->Wait().ok());
}

TEST(Templates, AreForgottenWhenTheirJobsAreOver) {
  Fixture f({.hold_jobs = true});
  std::optional<Template> made(*f.session->RegisterTemplate(f.OneLaunch()));
  auto job = f.session->Submit(*made);
  made.reset();
  ASSERT_TRUE(f.daemon.AwaitJobs(1));
  EXPECT_THAT(f.daemon.messages(), ::testing::Not(::testing::Contains("forget")));
  f.daemon.Release(1);
  ASSERT_TRUE(job->Wait().ok());
  EXPECT_TRUE(f.daemon.AwaitMessage("forget"));
}

TEST(Templates, TheirOwnFailureIsTold) {
  Fixture f({.refuse_template =
                 Status(StatusCode::kInvalidArgument, reason::kArgumentCount, "3, not 2")});
  auto made = f.session->RegisterTemplate(f.OneLaunch());
  auto first = f.session->Submit(*made);
  if (first.ok()) {
    EXPECT_EQ(first->Wait().status().reason(), reason::kArgumentCount);
  }
  EXPECT_EQ(f.session->Submit(*made).status().reason(), reason::kArgumentCount);
}

TEST(Window, FullFailsOrWaits) {
  Fixture f({.window_jobs = 2, .hold_jobs = true});
  auto a = f.session->Submit(f.OneLaunch());
  auto b = f.session->Submit(f.OneLaunch());
  ASSERT_TRUE(f.daemon.AwaitJobs(2));
  const auto refused = f.session->Submit(f.OneLaunch(), {.when_full = WhenFull::kFail});
  EXPECT_EQ(refused.status().reason(), reason::kWindowExceeded);

  std::optional<Submission> c;
  std::thread waits([&] { c = *f.session->Submit(f.OneLaunch()); });
  f.daemon.Release(1);
  waits.join();
  ASSERT_TRUE(f.daemon.AwaitJobs(3));
  f.daemon.Release(2);
  EXPECT_TRUE(a->Wait().ok());
  EXPECT_TRUE(b->Wait().ok());
  EXPECT_TRUE(c->Wait().ok());
}

TEST(Window, HasRoomAgainWhenReportsHaveArrivedUnread) {
  Fixture f({.window_jobs = 1});
  auto a = f.session->Submit(f.OneLaunch());
  // Nobody waits for it: the next submit finds the credit by itself, sooner or later.
  std::optional<Submission> b;
  const auto give_up = std::chrono::steady_clock::now() + 30s;
  while (!b && std::chrono::steady_clock::now() < give_up) {
    auto tried = f.session->Submit(f.OneLaunch(), {.when_full = WhenFull::kFail});
    if (tried.ok()) b = *std::move(tried);
  }
  EXPECT_TRUE(b.has_value());
}

TEST(Window, BytesCountToo) {
  Fixture f({.window_bytes = 100, .hold_jobs = true});
  const std::vector<std::byte> half(60), large(101);
  auto big = f.session->Allocate(1'000);
  EXPECT_EQ(f.session->Submit(Job().Write(*big, large)).status().reason(),
            reason::kStagingExceeded);
  auto a = f.session->Submit(Job().Write(*big, half));
  EXPECT_EQ(
      f.session->Submit(Job().Write(*big, half), {.when_full = WhenFull::kFail}).status().reason(),
      reason::kStagingExceeded);
  ASSERT_TRUE(f.daemon.AwaitJobs(1));
  f.daemon.Release(1);
  EXPECT_TRUE(a->Wait().ok());
  EXPECT_TRUE(f.session->Submit(Job().Write(*big, half), {.when_full = WhenFull::kFail}).ok());
}

TEST(Wait, TimesOutAndMayBeRepeated) {
  Fixture f({.hold_jobs = true});
  auto job = f.session->Submit(f.OneLaunch());
  EXPECT_FALSE(job->Done());
  EXPECT_EQ(job->Wait(1ms).status().reason(), reason::kWaitTimedOut);
  EXPECT_EQ(job->Wait(0ms).status().reason(), reason::kWaitTimedOut);
  ASSERT_TRUE(f.daemon.AwaitJobs(1));
  f.daemon.Release(1);
  EXPECT_TRUE(job->Wait(30s).ok());
  EXPECT_TRUE(job->Wait(0ms).ok());
  EXPECT_TRUE(job->Done());
}

TEST(Wait, LeadIsHandedOnByWhoeverLeaves) {
  Fixture f({.hold_jobs = true});
  auto slow = f.session->Submit(f.OneLaunch());
  auto fast = f.session->Submit(f.OneLaunch());
  ASSERT_TRUE(f.daemon.AwaitJobs(2));
  // Whichever of the two leads, the other is served when it leaves: one times out over and over.
  std::atomic<bool> over = false;
  std::thread impatient([&] {
    while (!over) {
      if (fast->Wait(1ms).ok()) return;
    }
  });
  std::thread patient([&] {
    EXPECT_TRUE(slow->Wait().ok());
    over = true;
  });
  f.daemon.Release(1);
  patient.join();
  f.daemon.Release(1);
  impatient.join();
  EXPECT_TRUE(fast->Wait().ok());
}

TEST(Wait, WhatOthersSentLeavesThoughTheLeaderLeftADaemonThatReadNothing) {
  Fixture f({.hold_jobs = true});
  constexpr std::size_t kMuch = 16 << 20;  // more than gRPC takes unread
  const Buffer big = *f.session->Allocate(kMuch);
  Submission held = *f.session->Submit(f.OneLaunch());
  ASSERT_TRUE(f.daemon.AwaitJobs(1));
  f.daemon.StopReading();
  Event about_to_wait;
  auto leader = std::async(std::launch::async, [&] {
    about_to_wait.Set();
    return held.Wait(500ms).status();
  });
  ASSERT_TRUE(about_to_wait.Await());
  const std::vector<std::byte> bytes = Pattern(kMuch, 1);
  auto sender = std::async(std::launch::async,
                           [&] { return f.session->Submit(Job().Write(big, bytes)).status(); });
  EXPECT_EQ(leader.get().reason(), reason::kWaitTimedOut);
  f.daemon.ReadAgain();
  EXPECT_TRUE(sender.get().ok());
  EXPECT_TRUE(f.daemon.AwaitJobs(2));  // nobody calls
}

TEST(Wait, ManyThreadsShareOneSession) {
  Fixture f;
  std::vector<std::thread> threads;
  std::atomic<int> done = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      auto buffer = f.session->Allocate(kBytes);
      for (unsigned i = 0; i < 200; ++i) {
        const auto bytes = Pattern(kBytes, i * 8 + static_cast<unsigned>(t));
        std::vector<std::byte> out(kBytes);
        auto job = f.session->Submit(Job().Write(*buffer, bytes).Read(*buffer, out));
        if (job->Wait().ok() && out == bytes) ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 8 * 200);
}

TEST(Wait, SeveralThreadsMayWaitForOneJob) {
  Fixture f({.hold_jobs = true});
  auto job = f.session->Submit(f.OneLaunch());
  ASSERT_TRUE(f.daemon.AwaitJobs(1));
  std::vector<std::thread> threads;
  std::atomic<int> done = 0;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&] { done += job->Wait().ok() ? 1 : 0; });
  f.daemon.Release(1);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 4);
}

TEST(Submission, DroppedDoesNotTouchTheCallersMemory) {
  Fixture f({.hold_jobs = true});
  auto out = std::make_unique<std::vector<std::uint8_t>>(kBytes, 1);
  {
    auto job = f.session->Submit(Job().Fill(*f.buffer, 9, kBytes).Read(*f.buffer, *out));
    ASSERT_TRUE(f.daemon.AwaitJobs(1));
  }
  auto last = f.session->Submit(f.OneLaunch());
  ASSERT_TRUE(f.daemon.AwaitJobs(2));
  f.daemon.Release(2);
  ASSERT_TRUE(last->Wait().ok());
  EXPECT_THAT(*out, ::testing::Each(1));
}

TEST(Callbacks, ComeOnceInOrderWithWhatWaitAnswers) {
  Fixture f;
  Event all;
  std::vector<int> order;
  for (int i = 0; i < 50; ++i) {
    auto job =
        f.session->Submit(f.OneLaunch(), {.on_done = [&, i](const Result<JobReport>& report) {
                            EXPECT_TRUE(report.ok());
                            order.push_back(i);
                            if (i == 49) all.Set();
                          }});
    ASSERT_TRUE(job.ok());
  }
  ASSERT_TRUE(all.Await());
  std::vector<int> expected(50);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(Callbacks, MaySubmitAndWait) {
  Fixture f;
  Event done;
  auto job = f.session->Submit(f.OneLaunch(), {.on_done = [&](const Result<JobReport>&) {
                                 EXPECT_TRUE(f.session->Submit(f.OneLaunch())->Wait().ok());
                                 done.Set();
                               }});
  EXPECT_TRUE(job->Wait().ok());
  EXPECT_TRUE(done.Await());
  EXPECT_TRUE(f.session->Submit(f.OneLaunch())->Wait().ok());
}

TEST(Callbacks, MayDestroyTheSession) {
  Fixture f;
  Event submitted, done;
  f.buffer.reset();
  auto job = f.session->Submit(Job().Launch(f.module->kernel("sum"), {1}, {1}),
                               {.on_done = [&](const Result<JobReport>&) {
                                 EXPECT_TRUE(submitted.Await());
                                 f.session.reset();
                                 done.Set();
                               }});
  submitted.Set();
  EXPECT_TRUE(done.Await());
}

TEST(Callbacks, HearOfTheSessionsEnd) {
  Fixture f({.hold_jobs = true});
  Event done;
  Status why;
  auto job = f.session->Submit(f.OneLaunch(), {.on_done = [&](const Result<JobReport>& report) {
                                 why = report.status();
                                 done.Set();
                               }});
  ASSERT_TRUE(f.daemon.AwaitJobs(1));
  f.session.reset();
  ASSERT_TRUE(done.Await());
  EXPECT_EQ(why.reason(), reason::kSessionClosed);
}

TEST(Queues, AreNumberedAndBounded) {
  Fixture f;
  for (std::uint32_t i = 1; i < 64; ++i) EXPECT_EQ(*f.session->OpenQueue(), i);
  EXPECT_EQ(f.session->OpenQueue().status().reason(), reason::kTooMany);
  EXPECT_TRUE(f.session->CloseQueue(7).ok());
  EXPECT_EQ(f.session->CloseQueue(7).reason(), reason::kUnknownQueue);
  EXPECT_EQ(f.session->CloseQueue(0).reason(), reason::kUnknownQueue);
  EXPECT_EQ(*f.session->OpenQueue(), 7u);
}

TEST(ChangeShare, WaitsForConsent) {
  Fixture f;
  EXPECT_TRUE(f.session->ChangeShare({.weight = 300}).ok());
  EXPECT_EQ(f.session->share().weight, 300);
  Fixture refusing({.refuse_share = Status(StatusCode::kFailedPrecondition,
                                           reason::kMinOversubscribed, "the sum would be 1.1")});
  EXPECT_EQ(refusing.session->ChangeShare({.min = 0.9}).reason(), reason::kMinOversubscribed);
  EXPECT_EQ(refusing.session->share().min, 0);
}

TEST(End, LostDaemonIsAnErrorForEverybody) {
  Fixture f({.hold_jobs = true});
  auto a = f.session->Submit(f.OneLaunch());
  auto b = f.session->Submit(f.OneLaunch());
  ASSERT_TRUE(f.daemon.AwaitJobs(2));
  std::thread waits([&] {
    const auto report = a->Wait();
    EXPECT_EQ(report.status().code(), StatusCode::kUnavailable);
    EXPECT_EQ(report.status().reason(), reason::kDaemonLost);
    EXPECT_THAT(report.status().message(), HasSubstr("daemon at '" + f.daemon.endpoint() + "'"));
    EXPECT_THAT(report.status().message(), HasSubstr("GPUSCHED_ENDPOINT"));
  });
  f.daemon.Vanish();
  waits.join();
  EXPECT_EQ(b->Wait().status().reason(), reason::kDaemonLost);
  EXPECT_EQ(f.session->Submit(f.OneLaunch()).status().reason(), reason::kDaemonLost);
  EXPECT_EQ(f.session->Allocate(1).status().reason(), reason::kDaemonLost);
  EXPECT_EQ(f.session->LoadModule({.source = "x"}).status().reason(), reason::kDaemonLost);
  EXPECT_EQ(f.session->ChangeShare({}).reason(), reason::kDaemonLost);
  EXPECT_EQ(f.session->Drain().reason(), reason::kDaemonLost);
  EXPECT_TRUE(f.session->Close().ok());
}

TEST(End, KilledSessionSaysSo) {
  Fixture f({.hold_jobs = true});
  auto job = f.session->Submit(f.OneLaunch());
  ASSERT_TRUE(f.daemon.AwaitJobs(1));
  f.daemon.EndSessions(Status(StatusCode::kAborted, reason::kKilled, "by the operator"));
  EXPECT_EQ(job->Wait().status().reason(), reason::kKilled);
  EXPECT_EQ(f.session->Submit(f.OneLaunch()).status().reason(), reason::kKilled);
}

TEST(End, ThreadsThatWaitForRoomHearOfIt) {
  Fixture f({.window_jobs = 1, .hold_jobs = true});
  auto job = f.session->Submit(f.OneLaunch());
  std::thread waits(
      [&] { EXPECT_EQ(f.session->Submit(f.OneLaunch()).status().reason(), reason::kKilled); });
  ASSERT_TRUE(f.daemon.AwaitJobs(1));
  f.daemon.EndSessions(Status(StatusCode::kAborted, reason::kKilled, "by the operator"));
  waits.join();
}

TEST(End, CloseIsSeenByTheDaemonAndByEveryHandle) {
  Fixture f({.hold_jobs = true});
  auto job = f.session->Submit(f.OneLaunch());
  EXPECT_TRUE(f.session->Close().ok());
  EXPECT_EQ(job->Wait().status().reason(), reason::kSessionClosed);
  EXPECT_EQ(f.session->Allocate(1).status().reason(), reason::kSessionClosed);
  EXPECT_TRUE(f.session->Close().ok());
}

TEST(End, CloseWhileOthersSubmitAndWait) {
  Fixture f;
  std::vector<std::thread> threads;
  std::atomic<int> running = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Status end;
      for (std::uint64_t i = 0; end.ok(); ++i) {
        auto job = f.session->Submit(f.OneLaunch());
        end = job.ok() ? job->Wait().status() : job.status();
        if (i == 10) ++running;
      }
      EXPECT_EQ(end.reason(), reason::kSessionClosed);
    });
  }
  const auto give_up = std::chrono::steady_clock::now() + 30s;
  while (running < 4 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_TRUE(f.session->Close().ok());
  for (std::thread& thread : threads) thread.join();
}

TEST(End, HandlesMayOutliveTheirSession) {
  Fixture f({.hold_jobs = true});
  auto job = f.session->Submit(f.OneLaunch());
  auto made = f.session->RegisterTemplate(f.OneLaunch());
  f.session.reset();
  f.client.reset();
  EXPECT_EQ(job->Wait().status().reason(), reason::kSessionClosed);
  EXPECT_TRUE(job->Done());
}

TEST(End, DrainFinishesWhatWasSubmitted) {
  Fixture f;
  auto job = f.session->Submit(f.OneLaunch());
  EXPECT_TRUE(f.session->Drain(30s).ok());
  EXPECT_TRUE(f.daemon.AwaitMessage("goodbye"));
  EXPECT_TRUE(job->Wait().ok());
}

TEST(Handles, MovedFromIsTyped) {
  Fixture f;
  Session session = std::move(*f.session);
  EXPECT_EQ(f.session->Allocate(1).status().reason(), reason::kMovedFrom);
  EXPECT_EQ(f.session->Submit(f.OneLaunch()).status().reason(), reason::kMovedFrom);
  auto job = session.Submit(f.OneLaunch());
  Submission moved = *std::move(job);
  EXPECT_EQ(job->Wait().status().reason(), reason::kMovedFrom);
  EXPECT_TRUE(moved.Wait().ok());
  Buffer buffer = std::move(*f.buffer);
  EXPECT_EQ(session.Submit(Job().Fill(*f.buffer, 0, 1)).status().reason(), reason::kMovedFrom);
  auto made = session.RegisterTemplate(Job().Fill(buffer, 0, 1));
  Template kept = *std::move(made);
  EXPECT_EQ(session.Submit(*made).status().reason(), reason::kMovedFrom);
  EXPECT_TRUE(session.Submit(kept)->Wait().ok());
}

TEST(Fork, ChildIsRefusedAndDisturbsNothing) {
  Fixture f({.hold_jobs = true});
  auto job = f.session->Submit(f.OneLaunch(), {.on_done = [](const Result<JobReport>&) {}});
  auto made = f.session->RegisterTemplate(f.OneLaunch());
  const pid_t child = fork();
  if (child == 0) {
    bool refused = f.session->Allocate(1).status().reason() == reason::kForked;
    refused &= f.session->Submit(f.OneLaunch()).status().reason() == reason::kForked;
    refused &= job->Wait().status().reason() == reason::kForked;
    refused &= f.client->OpenSession().status().reason() == reason::kForked;
    { const Submission dropped = *std::move(job); }
    { const Template dropped = *std::move(made); }
    f.buffer.reset();
    f.module.reset();
    f.session.reset();
    f.client.reset();
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(f.daemon.AwaitJobs(1));
  f.daemon.Release(1);
  EXPECT_TRUE(job->Wait().ok());
}

}  // namespace
}  // namespace gpusched::test
