// A demo that ends early leaves no process and no folder.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

template <typename Condition>
bool Await(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

std::string NameOf(pid_t pid) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
  return name;
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid) + "/task";
  std::vector<pid_t> children;
  std::error_code ignored;
  for (const fs::directory_entry& task : fs::directory_iterator(process, ignored)) {
    std::ifstream file(task.path() / "children");
    for (pid_t child; file >> child;) children.push_back(child);
  }
  return children;
}

// Below `pid`, at whatever depth; 0: there is none.
pid_t Find(const std::string& name, pid_t pid) {
  for (const pid_t child : ChildrenOf(pid)) {
    if (NameOf(child) == name) return child;
    if (const pid_t found = Find(name, child); found != 0) return found;
  }
  return 0;
}

// A demo on the virtual device whose daemon has made its sockets.
class Demo : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpusched-left-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      setpgid(0, 0);
      setenv("TMPDIR", folder_.c_str(), 1);
      execl(DEMO, DEMO, "--device=virtual", "--seconds=60", nullptr);
      _exit(127);
    }
    ASSERT_TRUE(Await([this] {
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder_)) {
        if (entry.path().filename() == "admin.sock") return true;
      }
      return false;
    }));
    ASSERT_NE(daemon(), 0);
  }
  void TearDown() override {
    kill(-pid_, SIGKILL);
    fs::remove_all(folder_);
  }
  pid_t daemon() const { return Find("gpuschedd", pid_); }
  int Status() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string folder_;
  pid_t pid_ = 0;
};

TEST_F(Demo, CtrlCLeavesNothing) {
  kill(-pid_, SIGINT);  // as the terminal does: the whole group
  EXPECT_EQ(Status(), 128 + SIGINT);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Demo, ATerminationLeavesNothing) {
  kill(pid_, SIGTERM);
  EXPECT_EQ(Status(), 128 + SIGTERM);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Demo, AKilledDaemonEndsItAndLeavesNothing) {
  kill(daemon(), SIGKILL);
  EXPECT_EQ(Status(), 1);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Demo, AKilledDemoLeavesNothing) {
  kill(ChildrenOf(pid_).front(), SIGKILL);
  EXPECT_EQ(Status(), 128 + SIGKILL);
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
