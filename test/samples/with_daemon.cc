// Runs a program beside a daemon of its own and ends with the program's exit status.
//
//   with_daemon DAEMON_FLAG... -- PROGRAM ARGUMENT...
//
// The program finds the daemon by GPUSCHED_ENDPOINT and GPUSCHED_ADMIN.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "support/daemon_process.h"

int main(int argc, char** argv) {
  gpusched::test::DaemonOptions options;
  options.flags.clear();
  int next = 1;
  for (; next < argc && std::strcmp(argv[next], "--") != 0; ++next) {
    options.flags.emplace_back(argv[next]);
  }
  if (++next >= argc) {
    std::fprintf(stderr, "usage: with_daemon DAEMON_FLAG... -- PROGRAM ARGUMENT...\n");
    return 2;
  }
  const auto daemon = gpusched::test::DaemonProcess::Start(options);
  if (!daemon.ok()) {
    std::fprintf(stderr, "%s\n", daemon.status().ToString().c_str());
    return 1;
  }
  setenv("GPUSCHED_ENDPOINT", (*daemon)->endpoint().c_str(), 1);
  setenv("GPUSCHED_ADMIN", (*daemon)->admin_endpoint().c_str(), 1);
  const pid_t pid = fork();
  if (pid == 0) {
    execv(argv[next], argv + next);
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  std::fprintf(stderr, "the daemon's log:\n%s", (*daemon)->Log().c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
