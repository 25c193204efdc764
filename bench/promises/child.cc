// Forks, executes, and speaks over two pipes.
#include "promises/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace gpusched::bench {
namespace {

using Clock = std::chrono::steady_clock;

Status Failure(const std::string& what) {
  return Status(StatusCode::kInternal, "CHILD_FAILED", what + ": " + std::strerror(errno));
}

}  // namespace

std::string ProgramPath(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / name;
}

Result<std::unique_ptr<Child>> Child::Start(std::vector<std::string> arguments, Errors errors) {
  int to_child[2], from_child[2];
  if (pipe2(to_child, O_CLOEXEC) != 0) return Failure("no pipe");
  if (pipe2(from_child, O_CLOEXEC) != 0) {
    const Status failure = Failure("no pipe");
    close(to_child[0]);
    close(to_child[1]);
    return failure;
  }
  // Everything is made ready before the fork: between fork and exec only system calls are safe.
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  std::unique_ptr<Child> child(new Child);
  child->pid_ = fork();
  if (child->pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(to_child[0], STDIN_FILENO);
    dup2(from_child[1], STDOUT_FILENO);
    if (errors == Errors::kWithOutput) dup2(from_child[1], STDERR_FILENO);
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  close(to_child[0]);
  close(from_child[1]);
  child->input_ = to_child[1];
  child->output_ = from_child[0];
  if (child->pid_ < 0) return Failure("cannot fork");
  return child;
}

Child::~Child() {
  if (pid_ > 0) {
    Kill();
    Wait();
  }
  close(input_);
  close(output_);
}

Result<bool> Child::Fill(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd ready{.fd = output_, .events = POLLIN, .revents = 0};
  const int found = poll(&ready, 1, left > 0 ? static_cast<int>(left) : 0);
  if (found < 0 && errno == EINTR) return true;
  if (found <= 0) {
    return Status(StatusCode::kDeadlineExceeded, "CHILD_SILENT",
                  "the program said nothing in time");
  }
  char bytes[4'096];
  const ssize_t count = read(output_, bytes, sizeof bytes);
  if (count < 0) return Failure("cannot read a program's output");
  buffer_.append(bytes, static_cast<std::size_t>(count));
  return count > 0;
}

Result<std::string> Child::ReadLine(std::chrono::milliseconds within) {
  const auto deadline = Clock::now() + within;
  std::size_t end;
  while ((end = buffer_.find('\n')) == std::string::npos) {
    const Result<bool> more = Fill(deadline);
    if (!more.ok()) return more.status();
    if (!*more) {
      return Status(StatusCode::kUnavailable, "CHILD_ENDED", "the program ended: " + buffer_);
    }
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

Result<std::string> Child::ReadAll(std::chrono::milliseconds within) {
  const auto deadline = Clock::now() + within;
  while (true) {
    const Result<bool> more = Fill(deadline);
    if (!more.ok()) return more.status();
    if (!*more) return std::move(buffer_);
  }
}

Status Child::WriteLine(const std::string& line) {
  const std::string text = line + "\n";
  if (write(input_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Failure("cannot write to a program");
  }
  return Status::Ok();
}

void Child::Kill() { kill(pid_, SIGKILL); }

int Child::Wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<Ran> Run(std::vector<std::string> arguments, std::chrono::seconds within) {
  const std::string name = arguments.front();
  Result<std::unique_ptr<Child>> child =
      Child::Start(std::move(arguments), Child::Errors::kWithOutput);
  if (!child.ok()) return child.status();
  Result<std::string> output = (*child)->ReadAll(within);
  if (!output.ok()) {
    return Status(output.status().code(), output.status().reason(),
                  name + ": " + output.status().message());
  }
  const int exit_status = (*child)->Wait();
  return Ran{.exit_status = exit_status, .output = *std::move(output)};
}

}  // namespace gpusched::bench
