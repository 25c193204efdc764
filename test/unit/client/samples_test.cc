// What the samples say and how they end, run as processes against a stand-in for the daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <future>
#include <string>

#include "fake_daemon.h"

namespace gpusched::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Ended {
  int status = -1;
  std::string text;
};

Ended RunIt(const std::string& command) {
  FILE* const out = popen(("timeout 60 " + command + " 2>&1").c_str(), "r");
  if (out == nullptr) return {};
  Ended ended;
  char line[4'096];
  while (std::fgets(line, sizeof line, out) != nullptr) ended.text += line;
  ended.status = WEXITSTATUS(pclose(out));
  return ended;
}

std::future<Ended> StartLoad(const FakeDaemon& daemon, const std::string& arguments) {
  return std::async(std::launch::async, RunIt,
                    LOAD " --endpoint " + daemon.endpoint() + " " + arguments);
}

TEST(Load, ALostDaemonIsToldAndEveryJobIsAccountedFor) {
  FakeDaemon daemon({.hold_jobs = true, .backend = "virtual"});
  std::future<Ended> load = StartLoad(daemon, "--outstanding 4 --seconds 30");
  for (std::size_t sent = 4; sent < 47; ++sent) {
    ASSERT_TRUE(daemon.AwaitJobs(sent));
    daemon.Release(1);
  }
  ASSERT_TRUE(daemon.AwaitJobs(47));
  daemon.Vanish();
  const Ended ended = load.get();
  EXPECT_EQ(ended.status, 1) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("47 sent, 43 done, 0 refused, 4 failed"));
  EXPECT_THAT(ended.text, HasSubstr("DAEMON_LOST"));
  // 43 in 30 s, which it did not run.
  EXPECT_THAT(ended.text, Not(HasSubstr(" 1.4 done a second")));
}

TEST(Load, AtRandomInstantsALostDaemonEndsItToo) {
  FakeDaemon daemon({.hold_jobs = true, .backend = "virtual"});
  std::future<Ended> load = StartLoad(daemon, "--rate 100 --seconds 50");
  ASSERT_TRUE(daemon.AwaitJobs(3));
  daemon.Vanish();
  const Ended ended = load.get();
  EXPECT_EQ(ended.status, 1) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("DAEMON_LOST"));
  unsigned long long sent = 0, done = 0, refused = 0, failed = 0;
  const std::size_t line = ended.text.find(" sent,");
  ASSERT_NE(line, std::string::npos) << ended.text;
  const char* const counts = ended.text.c_str() + ended.text.rfind("load: ", line);
  ASSERT_EQ(std::sscanf(counts, "load: %llu sent, %llu done, %llu refused, %llu failed", &sent,
                        &done, &refused, &failed),
            4)
      << ended.text;
  EXPECT_EQ(done, 0u);
  EXPECT_EQ(sent, refused + failed);
}

TEST(Load, AnEndedSessionIsToldWithItsReason) {
  FakeDaemon daemon({.hold_jobs = true, .backend = "virtual"});
  std::future<Ended> load = StartLoad(daemon, "--seconds 50");
  ASSERT_TRUE(daemon.AwaitJobs(2));
  daemon.EndSessions(Status(StatusCode::kCancelled, "KILLED", "by the operator"));
  const Ended ended = load.get();
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.text, HasSubstr("KILLED"));
  EXPECT_THAT(ended.text, HasSubstr("2 sent, 0 done, 0 refused, 2 failed"));
}

TEST(Load, NoMoreIsOutstandingThanTheSessionMayHave) {
  FakeDaemon daemon({.window_jobs = 5, .backend = "virtual"});
  const Ended ended = StartLoad(daemon, "--outstanding 100000 --seconds 0.2").get();
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("--outstanding 100000 is more than a session may have: 5"));
  EXPECT_THAT(ended.text, HasSubstr(", 0 refused, 0 failed"));
}

TEST(Load, ANumberOutOfItsRangeIsAWrongOption) {
  for (const char* arguments :
       {"--rate inf",     "--rate nan",    "--rate -1",         "--rate 0",
        "--rate 1e300",   "--seconds inf", "--seconds -1",      "--seconds 1e18",
        "--weight 0",     "--weight 1e9",  "--min nan",         "--max 0",
        "--priority 1e6", "--target -1ms", "--target 1000000h", "--kernel-time 0",
        "--blocks -1",    "--blocks inf",  "--outstanding nan", "--outstanding 99999999999",
        "--seed -1"}) {
    const Ended ended = RunIt(std::string(LOAD " --endpoint unix:/nonexistent ") + arguments);
    EXPECT_EQ(ended.status, 2) << arguments << ": " << ended.text;
    EXPECT_THAT(ended.text, HasSubstr("at most")) << arguments;
  }
}

TEST(Samples, ANumberOutOfItsRangeIsAWrongOption) {
  for (const char* command :
       {RECOMMENDATION " --rate inf", RECOMMENDATION " --rate nan", RECOMMENDATION " --rate -1",
        RECOMMENDATION " --rate 1e300", RECOMMENDATION " --seconds inf",
        RECOMMENDATION " --seconds 1e9", RECOMMENDATION " --seconds 0",
        RECOMMENDATION " --target 0", RECOMMENDATION " --alone 1000000h",
        RECOMMENDATION " --launch -1ms"}) {
    const Ended ended = RunIt(command);
    EXPECT_EQ(ended.status, 2) << command << ": " << ended.text;
    EXPECT_THAT(ended.text, HasSubstr("above 0, at most")) << command;
  }
  const Ended both = RunIt(RECOMMENDATION " --rate 10000 --seconds 86400");
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.text, HasSubstr("more than a million requests"));
}

TEST(HelloJob, HelpIsNoEndpoint) {
  const Ended help = RunIt(HELLO_JOB " --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.text, HasSubstr("hello_job [ENDPOINT [DEVICE]]"));
  const Ended wrong = RunIt(HELLO_JOB " --device virtual");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.text, HasSubstr("hello_job [ENDPOINT [DEVICE]]"));
}

}  // namespace
}  // namespace gpusched::test
