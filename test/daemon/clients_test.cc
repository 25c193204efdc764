// Clients that come, go, are killed, and share names and devices.
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "fixture.h"

namespace gpusched::test {
namespace {

class Clients : public WithDaemon {
 protected:
  std::uint64_t MemoryPromised() {
    std::uint64_t bytes = 0;
    for (const admin::Session& session : Take(admin_->Sessions()))
      bytes += session.memory_quota_bytes;
    return bytes;
  }
};

// The stubborn client in a process of its own.
class Stubborn {
 public:
  Stubborn(const std::string& endpoint, const std::string& point) {
    int out[2];
    if (pipe(out) != 0) throw std::runtime_error("pipe");
    const std::string program = STUBBORN_CLIENT;
    const char* arguments[] = {program.c_str(), endpoint.c_str(), point.c_str(), nullptr};
    pid_ = vfork();
    if (pid_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      execv(arguments[0], const_cast<char* const*>(arguments));
      _exit(127);
    }
    close(out[1]);
    char first = 0;
    there_ = read(out[0], &first, 1) == 1;
    close(out[0]);
  }
  ~Stubborn() { Kill(); }
  Stubborn(const Stubborn&) = delete;
  Stubborn& operator=(const Stubborn&) = delete;

  bool there() const { return there_; }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  bool there_ = false;
};

TEST_F(Clients, AKilledClientLeavesNothingBehind) {
  Start();
  for (const char* point : {"opening", "running", "waiting", "writing"}) {
    Stubborn client(daemon_->endpoint(), point);
    ASSERT_TRUE(client.there()) << point;
    ASSERT_EQ(Take(admin_->Sessions()).size(), 1u) << point;
    client.Kill();
    EXPECT_TRUE(Eventually([&] { return Take(admin_->Sessions()).empty(); })) << point;
    EXPECT_EQ(MemoryPromised(), 0u);
  }
  // All of the device can be promised again.
  const std::uint64_t all = Take(admin_->Devices()).at(0).memory_bytes;
  EXPECT_TRUE(client_->OpenSession({.memory = all}).ok());
}

TEST_F(Clients, NamesAreLabelsAndAnAmbiguousOneListsTheIds) {
  Start();
  Session first = Open({.name = "twin"});
  Session second = Open({.name = "twin"});
  const Status status = admin_->Pause("twin").status();
  EXPECT_THAT(status, Refused("AMBIGUOUS_NAME"));
  EXPECT_THAT(status.message(), testing::HasSubstr(std::to_string(first.id())));
  EXPECT_THAT(status.message(), testing::HasSubstr(std::to_string(second.id())));
  EXPECT_TRUE(Take(admin_->Pause(std::to_string(second.id()))).at(0).paused);
  EXPECT_THAT(admin_->Kill("nobody").status(), Refused("UNKNOWN_SESSION"));
}

TEST_F(Clients, SessionsRunOnTheDeviceTheyAskFor) {
  Start({.flags = {"--device=virtual", "--devices=4"}});
  for (const int device : {2, 0, 3, 1}) {
    Session session = Open({.device = "virtual-" + std::to_string(device)});
    EXPECT_EQ(session.device().index, device);
    const Module module = Load(session);
    Submission job = Take(session.Submit(Job().Launch(module.kernel("quick"), {1}, {1})));
    Take(job.Wait(kSoon));
    for (const admin::Device& seen : Take(admin_->Devices())) {
      EXPECT_EQ(seen.sessions, seen.index == device ? 1u : 0u);
    }
    ASSERT_TRUE(session.Close().ok());
  }
}

TEST_F(Clients, AutoTakesTheLeastLoadedDeviceWithRoom) {
  Start({.yaml = "version: 1\ndevice: {kind: virtual, count: 3, memory: 1GiB}\n", .flags = {}});
  Session big = Open({.device = "0", .memory = 1_GiB});
  Session busy = Open({.device = "1", .memory = 1_MiB});
  const Module module = Load(busy);
  Submission job = Take(busy.Submit(Job().Launch(module.kernel("long"), {60'000}, {1})));
  ASSERT_TRUE(Eventually([&] {
    for (const admin::Session& session : Take(admin_->Sessions())) {
      if (session.id == busy.id()) return session.jobs_running == 1;
    }
    return false;
  }));
  Session placed = Open({.memory = 1_MiB});
  EXPECT_EQ(placed.device().index, 2);
  Session large = Open({.memory = 1_GiB - 1_MiB});
  EXPECT_EQ(large.device().index, 2);
  EXPECT_THAT(client_->OpenSession({.memory = 1_GiB}).status(), Refused("DEVICE_MEMORY"));
  ASSERT_TRUE(job.Cancel().ok());
}

TEST_F(Clients, AKilledSessionIsToldWhy) {
  Start();
  Session session = Open({.name = "victim"});
  const Module module = Load(session);
  Submission running = Take(session.Submit(Job().Launch(module.kernel("long"), {60'000}, {1})));
  ASSERT_TRUE(Eventually([&] { return Take(admin_->Sessions()).at(0).jobs_running > 0; }));
  Take(admin_->Kill("victim"));
  EXPECT_THAT(Take(running.Wait(kSoon)).why, Refused("KILLED"));
  EXPECT_TRUE(Eventually([&] { return Take(admin_->Sessions()).empty(); }));
}

TEST_F(Clients, APausedSessionWaitsAndGoesOn) {
  Start();
  Session session = Open({.name = "sleeper"});
  const Module module = Load(session);
  Take(admin_->Pause("sleeper"));
  Submission job = Take(session.Submit(Job().Launch(module.kernel("quick"), {1}, {1})));
  Session other = Open();
  const Module others = Load(other);
  Submission others_job = Take(other.Submit(Job().Launch(others.kernel("quick"), {1}, {1})));
  Take(others_job.Wait(kSoon));
  EXPECT_FALSE(job.Done());
  Take(admin_->Resume("sleeper"));
  EXPECT_EQ(Take(job.Wait(kSoon)).outcome, Outcome::kDone);
}

// Resident memory of a process, by the kernel's count.
std::uint64_t ResidentBytes(pid_t pid) {
  std::ifstream statm("/proc/" + std::to_string(pid) + "/statm");
  std::uint64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST_F(Clients, WhatAKilledSessionDidNotReadGoesWithIt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps freed memory for a while";
#endif
  Start();
  const std::uint64_t before = ResidentBytes(daemon_->pid());
  Session session = Take(client_->OpenSession({.name = "unread", .memory = 512_MiB}));
  std::vector<char> bytes(32_MiB);
  std::vector<Submission> unread;
  ReadMuchAndTakeNothing(session, bytes, unread);
  ASSERT_TRUE(Eventually([&] { return ResidentBytes(daemon_->pid()) > before + 32_MiB; }));
  Take(admin_->Kill("unread"));
  EXPECT_TRUE(Eventually([&] { return ResidentBytes(daemon_->pid()) < before + 16_MiB; }));
}

}  // namespace
}  // namespace gpusched::test
