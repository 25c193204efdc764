// Spawns, waits and reads the exit status.
#include "macro/run_program.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace gpusched::bench {
namespace {

// Exit status; 127 if it could not be started, 128 and more for a signal.
int Run(const std::string& program, const std::string& endpoint) {
  std::string variable = "GPUSCHED_ENDPOINT=" + endpoint, name = program;
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.insert(environment.begin(), variable.data());
  environment.push_back(nullptr);
  char* arguments[] = {name.data(), nullptr};
  pid_t pid = -1;
  if (posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments, environment.data()) != 0) {
    return 127;
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Status RunSample(const std::string& program, const std::string& endpoint) {
  const int status = Run(program, endpoint);
  if (status == 0) return Status::Ok();
  return Status(
      StatusCode::kInternal, "SAMPLE_FAILED",
      program + " ended with status " + std::to_string(status) + "; its own words stand above");
}

}  // namespace gpusched::bench
