// The samples' loads against a stand-in for the daemon: what counts as failed, and when they end.
#include "common/loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "fake_daemon.h"
#include "gpusched/reasons.h"

namespace gpusched::test {
namespace {

using namespace std::chrono_literals;

struct Stage {
  explicit Stage(FakeDaemonOptions options = {}) : daemon(std::move(options)) {
    client = *Client::Connect({.endpoint = daemon.endpoint()});
    session = *client->OpenSession({.name = "load"});
    module = *session->LoadModule({.virtual_text = "scale"});
    job.Launch(module->kernel("scale"), {1}, {1});
  }

  FakeDaemon daemon;
  std::optional<Client> client;
  std::optional<Session> session;
  std::optional<Module> module;
  Job job;
};

// Jobs are due for a day to come: the test would not end.
TEST(ALoadThatIsDue, EndsWithItsDaemonAndSaysSo) {
  Stage stage;
  const std::vector<Duration> due{0ms, 1ms, 2ms, 24h};
  const samples::LoadOutcome outcome =
      samples::RunWhenDue(due, [&](std::size_t index, const SubmitOptions& options) {
        if (index == 2) stage.daemon.Vanish();
        return stage.session->Submit(stage.job, options);
      });
  EXPECT_EQ(outcome.first_error.reason(), reason::kDaemonLost) << outcome.first_error.ToString();
  ASSERT_EQ(outcome.jobs.size(), 4u);
  EXPECT_NE(outcome.jobs[2].fate, samples::Fate::kDone);
  EXPECT_EQ(outcome.jobs[3].fate, samples::Fate::kUnfinished);
}

TEST(ALoadThatIsDue, EndsWithItsSession) {
  Stage stage({.hold_jobs = true});
  const std::vector<Duration> due{0ms, 24h};
  const samples::LoadOutcome outcome =
      samples::RunWhenDue(due, [&](std::size_t, const SubmitOptions& options) {
        auto submission = stage.session->Submit(stage.job, options);
        stage.daemon.EndSessions(Status(StatusCode::kUnavailable, reason::kKilled, "by hand"));
        return submission;
      });
  EXPECT_EQ(outcome.first_error.reason(), reason::kKilled) << outcome.first_error.ToString();
}

TEST(ALoadThatIsDue, TellsWhyACancelledJobFailed) {
  Stage stage({.hold_jobs = true});
  const samples::LoadOutcome outcome =
      samples::RunWhenDue({0ms}, [&](std::size_t, const SubmitOptions& options) {
        auto submission = stage.session->Submit(stage.job, options);
        EXPECT_TRUE(submission->Cancel().ok());
        EXPECT_TRUE(stage.daemon.AwaitMessage("cancel"));
        stage.daemon.Release(1);
        return submission;
      });
  EXPECT_EQ(outcome.jobs.at(0).fate, samples::Fate::kFailed);
  EXPECT_EQ(outcome.first_error.reason(), reason::kCancelled);
}

}  // namespace
}  // namespace gpusched::test
