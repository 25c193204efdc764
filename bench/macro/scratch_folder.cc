// Forks once; the parent holds the folder and nothing else.
#include "macro/scratch_folder.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace gpusched::bench {
namespace {

// Longer, and a socket in it would not fit the 107 bytes of a socket's path.
constexpr std::size_t kLongestRoot = 40;

std::string NewFolder() {
  const char* root = std::getenv("TMPDIR");
  if (root == nullptr || *root == '\0' || std::strlen(root) > kLongestRoot) root = "/tmp";
  std::string name = std::string(root) + "/gpusched-XXXXXX";
  return mkdtemp(name.data()) == nullptr ? std::string() : name;
}

// Until the child has ended; its signals are passed on.
int Await(pid_t child, const sigset_t& signals) {
  for (int status = 0;;) {
    const int signal = sigwaitinfo(&signals, nullptr);
    if (signal > 0 && signal != SIGCHLD) kill(child, signal);
    if (waitpid(child, &status, WNOHANG) != child) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

}  // namespace

std::optional<int> AwaitInScratchFolder() {
  const std::string folder = NewFolder();
  if (folder.empty()) return std::nullopt;
  std::fflush(nullptr);  // once, not in both
  // What the child leaves behind becomes ours: nothing writes to the folder when it goes.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t signals, before;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    setenv("TMPDIR", folder.c_str(), 1);
    return std::nullopt;
  }
  std::optional<int> ended;
  if (child > 0) {
    ended = Await(child, signals);
    while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) continue;
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return ended;
}

}  // namespace gpusched::bench
