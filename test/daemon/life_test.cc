// How a daemon starts, refuses to start, stops and comes back.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <vector>

#include "fixture.h"

namespace gpusched::test {
namespace {

// What a daemon that does not start says; it ends by itself.
std::string Refusal(const std::string& arguments) {
  const std::string command = "timeout 60 " GPUSCHEDD " --device=virtual " + arguments + " 2>&1";
  FILE* const out = popen(command.c_str(), "r");
  if (out == nullptr) return "(popen failed)";
  std::string text;
  char line[4'096];
  while (std::fgets(line, sizeof line, out) != nullptr) text += line;
  const int status = pclose(out);
  return text + "(exit " + std::to_string(WEXITSTATUS(status)) + ")";
}

std::string At(const std::string& folder) {
  return "--endpoint=unix:" + folder + "/gpusched.sock --admin=unix:" + folder + "/admin.sock";
}

class Life : public WithDaemon {
 protected:
  // A folder that outlives its daemon.
  std::string Folder() {
    char name[] = "/tmp/gpusched-life-XXXXXX";
    if (mkdtemp(name) != nullptr) folders_.push_back(name);
    return name;
  }
  void TearDown() override {
    daemon_.reset();
    for (const std::string& folder : folders_) std::filesystem::remove_all(folder);
  }

 private:
  std::vector<std::string> folders_;
};

TEST_F(Life, ALivingDaemonsSocketIsNotTaken) {
  Start();
  EXPECT_THAT(Refusal(At(daemon_->folder())), testing::AllOf(testing::HasSubstr("SOCKET_IN_USE"),
                                                             testing::HasSubstr(daemon_->folder()),
                                                             testing::HasSubstr("(exit 1)")));
  EXPECT_TRUE(client_->OpenSession().ok());
}

TEST_F(Life, AWrongOptionOrConfigurationIsNotAFailureToRun) {
  const std::string folder = Folder();
  const auto ends_with_2 = testing::EndsWith("(exit 2)");
  EXPECT_THAT(Refusal("--no-such-option"), ends_with_2);
  EXPECT_THAT(Refusal(At(folder) + " --devices=9"), ends_with_2);
  EXPECT_THAT(Refusal(At(folder) + " --policy=no_such_policy"), ends_with_2);
  EXPECT_THAT(Refusal(At(folder) + " --preemption-bound=inf"), ends_with_2);
  EXPECT_THAT(Refusal("--endpoint=nonsense --admin=unix:" + folder + "/admin.sock"), ends_with_2);
  EXPECT_THAT(Refusal(At(folder) + " --config=" + folder + "/none.yaml"), ends_with_2);
  std::ofstream(folder + "/bad.yaml") << "version: 1\nno_such_key: 1\n";
  EXPECT_THAT(Refusal(At(folder) + " --config=" + folder + "/bad.yaml"), ends_with_2);
  // What another machine could do.
  EXPECT_THAT(Refusal(At(folder + "/bad.yaml")), testing::EndsWith("(exit 1)"));
}

TEST_F(Life, AStaleSocketIsTakenOver) {
  const std::string folder = Folder();
  Start({.folder = folder});
  daemon_->Kill(SIGKILL);
  ASSERT_TRUE(daemon_->Wait(kSoon).has_value());
  ASSERT_TRUE(std::filesystem::exists(folder + "/gpusched.sock"));
  Start({.folder = folder});
  EXPECT_TRUE(client_->OpenSession().ok());
}

TEST_F(Life, AnotherProgramsSocketIsLeftAlone) {
  const std::string folder = Folder();
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder + "/gpusched.sock").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  EXPECT_THAT(Refusal(At(folder)), testing::HasSubstr("SOCKET_IN_USE"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/gpusched.sock"));
  close(listener);
}

TEST_F(Life, TcpBeyondTheMachineNeedsAWord) {
  const std::string folder = Folder();
  EXPECT_THAT(Refusal("--endpoint=0.0.0.0:0 " + At(folder)),
              testing::HasSubstr("INSECURE_ENDPOINT"));
  EXPECT_THAT(Refusal("--endpoint=unix:" + folder + "/s --admin=127.0.0.1:0"),
              testing::HasSubstr("INSECURE_ENDPOINT"));
  Start({.yaml = "version: 1\nlisten: {insecure: true}\n",
         .flags = {"--device=virtual", "--endpoint=0.0.0.0:0"}});
}

TEST_F(Life, EverythingThatIsWrongWithTheConfigurationIsSaidAtOnce) {
  const std::string folder = Folder(), path = folder + "/gpuschedd.yaml";
  std::ofstream(path) << "version: 1\ndevice: {kind: virtual, count: 9}\nsesions: {}\n"
                         "policy: {kind: weighted_share, slice: 0}\n";
  EXPECT_THAT(Refusal("--config=" + path), testing::AllOf(testing::HasSubstr("line 2, column 32"),
                                                          testing::HasSubstr("line 3, column 1"),
                                                          testing::HasSubstr("line 4, column 39")));
  EXPECT_THAT(Refusal("--config=" + path + ".missing"), testing::HasSubstr("cannot read"));
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

TEST_F(Life, UnreadResultsDoNotKeepADaemonThatStops) {
  for (const bool tcp : {false, true}) {
    for (const bool twice : {false, true}) {
      SCOPED_TRACE(std::string(tcp ? "TCP" : "unix") + (twice ? ", a second signal" : ""));
      // The first signal alone gives up after the timeout, the second long before it.
      Start({.yaml = std::string("version: 1\ndrain_timeout: ") + (twice ? "1h" : "100ms") + "\n",
             .tcp = tcp});
      const Client client =
          Take(Client::Connect({.endpoint = tcp ? daemon_->tcp_endpoint() : daemon_->endpoint()}));
      Session session = Take(client.OpenSession({.memory = 512_MiB}));
      std::vector<char> bytes(32_MiB);
      std::vector<Submission> unread;
      ReadMuchAndTakeNothing(session, bytes, unread);
      // One job's result alone is more than a socket takes.
      ASSERT_TRUE(Eventually([&] {
        const auto sessions = Take(admin_->Sessions());
        return !sessions.empty() && sessions.front().jobs_done >= 1;
      }));
      daemon_->Kill(SIGTERM);
      if (twice) {
        ASSERT_TRUE(daemon_->WaitForLog("stopping", kSoon));
        daemon_->Kill(SIGTERM);
      }
      EXPECT_EQ(daemon_->Wait(15s), 0);
    }
  }
}

// gRPC ends a cancelled call only when the socket takes what is being written.
TEST_F(Life, ASessionOfAStoppedDaemonCanBeClosed) {
  constexpr std::size_t kMuch = 16 << 20;  // more than gRPC takes unread
  Start();
  Session session = Open();
  const Buffer buffer = Take(session.Allocate(kMuch));
  const std::vector<std::byte> bytes(kMuch);
  daemon_->Kill(SIGSTOP);
  auto sender = std::async(std::launch::async,
                           [&] { return session.Submit(Job().Write(buffer, bytes)).status(); });
  static_cast<void>(session.Close());  // with the sender before or in its call
  EXPECT_FALSE(sender.get().ok());
  daemon_->Kill(SIGCONT);
}

TEST_F(Life, AClientFindsTheDaemonThatCameBack) {
  const std::string folder = Folder();
  Start({.folder = folder});
  Session session = Open();
  const Module module = Load(session);
  Submission lost = Take(session.Submit(Job().Launch(module.kernel("long"), {60'000}, {1})));
  daemon_->Kill(SIGKILL);
  EXPECT_THAT(lost.Wait(kSoon).status(), Refused("DAEMON_LOST"));
  const std::string admin_said = admin_->GetPolicy().status().ToString();
  EXPECT_THAT(admin_said,
              testing::StartsWith("UNAVAILABLE (DAEMON_LOST): the connection to the daemon at '" +
                                  daemon_->admin_endpoint() + "' was lost: is gpuschedd running"));
  EXPECT_THAT(admin_said, testing::HasSubstr("GPUSCHED_ADMIN"));
  Start({.folder = folder});
  EXPECT_TRUE(client_->OpenSession().ok());
}

}  // namespace
}  // namespace gpusched::test
