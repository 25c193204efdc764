// How a daemon starts, refuses to start, stops and comes back.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <csignal>

#include "fixture.h"

namespace gpusched::test {
namespace {

class Life : public WithDaemon {
 protected:
  // Why a daemon with these options does not start.
  static std::string Refusal(DaemonOptions options) {
    const auto daemon = DaemonProcess::Start(std::move(options));
    return daemon.ok() ? "(it started)" : daemon.status().message();
  }
};

TEST_F(Life, AStaleSocketIsTakenOverAndALivingOneIsNot) {
  Start();
  const std::string folder = daemon_->folder();
  mkdir((folder + "/other").c_str(), 0700);
  EXPECT_THAT(Refusal({.folder = folder}), testing::HasSubstr("SOCKET_IN_USE"));
  EXPECT_TRUE(client_->OpenSession().ok());
  // Killed, it leaves its sockets behind.
  char again[] = "/tmp/gpusched-life-XXXXXX";
  ASSERT_NE(mkdtemp(again), nullptr);
  Start({.folder = again});
  daemon_->Kill(SIGKILL);
  ASSERT_TRUE(daemon_->Wait(kSoon).has_value());
  struct stat info {};
  ASSERT_EQ(stat((std::string(again) + "/gpusched.sock").c_str(), &info), 0);
  Start({.folder = again});
  EXPECT_TRUE(client_->OpenSession().ok());
}

TEST_F(Life, AnotherProgramsSocketIsLeftAlone) {
  char folder[] = "/tmp/gpusched-life-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (std::string(folder) + "/gpusched.sock").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  EXPECT_THAT(Refusal({.folder = folder, .ready_within = 5s}), testing::HasSubstr("SOCKET_IN_USE"));
  close(listener);
}

TEST_F(Life, TcpBeyondTheMachineNeedsAWord) {
  EXPECT_THAT(
      Refusal({.yaml = "version: 1\n", .flags = {"--device=virtual", "--endpoint=0.0.0.0:0"}}),
      testing::HasSubstr("INSECURE_ENDPOINT"));
  Start({.yaml = "version: 1\nlisten: {insecure: true}\n",
         .flags = {"--device=virtual", "--endpoint=0.0.0.0:0"}});
}

TEST_F(Life, EverythingThatIsWrongWithTheConfigurationIsSaidAtOnce) {
  const std::string refusal =
      Refusal({.yaml = "version: 1\ndevice: {kind: virtual, count: 9}\nsesions: {}\n"
                       "policy: {kind: weighted_share, slice: 0}\n",
               .flags = {}});
  EXPECT_THAT(refusal, testing::AllOf(testing::HasSubstr("line 2, column 32"),
                                      testing::HasSubstr("line 3, column 1"),
                                      testing::HasSubstr("line 4, column 39")));
}

TEST_F(Life, UnixAndTcpServeTheSameDevices) {
  Start({.tcp = true});
  const Client tcp = Take(Client::Connect({.endpoint = daemon_->tcp_endpoint()}));
  Session session = Take(tcp.OpenSession());
  const Module module = Load(session);
  Submission job = Take(session.Submit(Job().Launch(module.kernel("quick"), {1}, {1})));
  Take(job.Wait(kSoon));
}

TEST_F(Life, SigtermLetsSessionsFinishTheirJobs) {
  Start();
  Session busy = Open();
  const Module module = Load(busy);
  Submission running = Take(busy.Submit(Job().Launch(module.kernel("whole"), {300}, {1})));
  Session idle = Open();
  daemon_->Kill(SIGTERM);
  EXPECT_EQ(Take(running.Wait(kSoon)).outcome, Outcome::kDone);
  EXPECT_EQ(daemon_->Wait(kSoon), 0);
  EXPECT_FALSE(client_->OpenSession().ok());
  struct stat info {};
  EXPECT_NE(stat((daemon_->folder() + "/gpusched.sock").c_str(), &info), 0);
}

TEST_F(Life, ASecondSigtermCancelsWhatIsLeft) {
  Start();
  Session session = Open();
  const Module module = Load(session);
  Submission running = Take(session.Submit(Job().Launch(module.kernel("long"), {60'000}, {1})));
  daemon_->Kill(SIGTERM);
  ASSERT_TRUE(daemon_->WaitForLog("stopping", kSoon));
  daemon_->Kill(SIGTERM);
  EXPECT_EQ(daemon_->Wait(kSoon), 0);
  EXPECT_FALSE(running.Wait(kSoon).ok() && running.Wait(kSoon)->outcome == Outcome::kDone);
}

TEST_F(Life, AClientFindsTheDaemonThatCameBack) {
  char folder[] = "/tmp/gpusched-life-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  Start({.folder = folder});
  Session session = Open();
  const Module module = Load(session);
  Submission lost = Take(session.Submit(Job().Launch(module.kernel("long"), {60'000}, {1})));
  daemon_->Kill(SIGKILL);
  EXPECT_THAT(lost.Wait(kSoon).status(), Refused("DAEMON_LOST"));
  Start({.folder = folder});
  EXPECT_TRUE(client_->OpenSession().ok());
}

}  // namespace
}  // namespace gpusched::test
