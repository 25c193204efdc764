// Spawns gpuschedd, waits until its sockets accept, and cleans up behind it.
#include "support/daemon_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gpusched::test {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Between two looks at a socket, a log or a child that is about to end.
constexpr milliseconds kLookEvery{2};
constexpr std::size_t kLogTailBytes = 4'000;

Status Failure(const std::string& message) {
  return Status(StatusCode::kUnavailable, "DAEMON_NOT_STARTED", message);
}

// Waits without using the processor; `within` bounds it.
template <typename Condition>
bool Await(milliseconds within, Condition condition) {
  const auto deadline = SteadyClock::now() + within;
  while (!condition()) {
    if (SteadyClock::now() >= deadline) return false;
    poll(nullptr, 0, static_cast<int>(kLookEvery.count()));
  }
  return true;
}

bool AcceptsUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool accepted =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return accepted;
}

// A loopback port nobody listens on now. Another process could take it before the daemon does; the
// daemon then says so and the start fails with its words.
std::optional<int> FreeTcpPort() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  socklen_t size = sizeof address;
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(fd);
  if (!bound) return std::nullopt;
  return ntohs(address.sin_port);
}

std::string DaemonBinary(const DaemonOptions& options) {
  if (!options.binary.empty()) return options.binary;
  const char* from_environment = std::getenv("GPUSCHED_DAEMON");
  return from_environment != nullptr ? from_environment : GPUSCHED_DAEMON_BINARY;
}

std::vector<std::string> Environment(const DaemonOptions& options) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : options.environment) {
      if (text.starts_with(name + "=")) replaced = true;
    }
    if (!replaced) result.push_back(text);
  }
  for (const auto& [name, value] : options.environment) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Result<std::unique_ptr<DaemonProcess>> DaemonProcess::Start(DaemonOptions options) {
  std::unique_ptr<DaemonProcess> daemon(new DaemonProcess);
  if (Status status = daemon->Spawn(options); !status.ok()) return status;
  if (Status status = daemon->AwaitReady(options.ready_within); !status.ok()) return status;
  return daemon;
}

DaemonProcess::~DaemonProcess() {
  if (running()) {
    Kill(SIGKILL);
    Wait(milliseconds(10'000));
  }
  // A sanitizer's report would go with the folder.
  const std::string log = Log();
  if (const std::size_t report = log.find("Sanitizer:"); report != std::string::npos) {
    const std::size_t line = log.rfind('\n', report);
    std::fprintf(stderr, "%s\n", log.c_str() + (line == std::string::npos ? 0 : line));
  }
  std::error_code ignored;
  if (folder_is_ours_) std::filesystem::remove_all(folder_, ignored);
}

Status DaemonProcess::Spawn(const DaemonOptions& options) {
  folder_ = options.folder;
  if (folder_.empty()) {
    // Short, because a unix socket's path must fit into 107 bytes.
    const char* root = std::getenv("TMPDIR");
    if (root == nullptr || std::strlen(root) > 60) root = "/tmp";
    std::string name = std::string(root) + "/gpusched-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      return Failure("no temporary folder under " + std::string(root) + ": " +
                     std::strerror(errno) + "; set TMPDIR to a writable folder");
    }
    folder_ = name;
    folder_is_ours_ = true;
  }

  const std::string binary = DaemonBinary(options);
  std::vector<std::string> arguments = {binary};
  if (!options.yaml.empty()) {
    std::ofstream(config_path()) << options.yaml;
    arguments.push_back("--config=" + config_path());
  }
  arguments.push_back("--endpoint=" + endpoint());
  if (options.tcp) {
    const std::optional<int> port = FreeTcpPort();
    if (!port) return Failure("no free loopback TCP port");
    tcp_endpoint_ = "127.0.0.1:" + std::to_string(*port);
    arguments.push_back("--endpoint=" + tcp_endpoint_);
  }
  arguments.push_back("--admin=" + admin_endpoint());
  arguments.insert(arguments.end(), options.flags.begin(), options.flags.end());

  // Everything is made ready before the fork: between fork and exec only system calls are safe.
  std::vector<std::string> environment = Environment(options);
  const std::vector<char*> argument_pointers = Pointers(arguments);
  const std::vector<char*> environment_pointers = Pointers(environment);
  log_before_ = Log().size();
  const int log = open(log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return Failure("cannot write " + log_path() + ": " + std::strerror(errno));
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execve(binary.c_str(), argument_pointers.data(), environment_pointers.data());
    static constexpr char kMessage[] = "cannot execute the daemon's binary\n";
    (void)!write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
    _exit(127);
  }
  close(log);
  if (pid_ < 0) return Failure("cannot fork: " + std::string(std::strerror(errno)));
  return Status::Ok();
}

Status DaemonProcess::AwaitReady(milliseconds within) {
  const std::string session = folder_ + "/gpusched.sock", admin = folder_ + "/admin.sock";
  const bool settled =
      Await(within, [&] { return !running() || (AcceptsUnix(session) && AcceptsUnix(admin)); });
  if (!running()) {
    return Failure("the daemon ended with status " + std::to_string(exit_status_.value_or(-1)) +
                   " before it was ready; its log ends:\n" + LogTail());
  }
  if (!settled) {
    return Failure("the daemon was not ready after " + std::to_string(within.count()) +
                   " ms; its log ends:\n" + LogTail());
  }
  return Status::Ok();
}

std::string DaemonProcess::Log() const {
  std::ifstream file(log_path());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The sockets alone could be those of another daemon in the same folder.
bool DaemonProcess::SaidItIsReady() const {
  return Log().find("gpuschedd ready", log_before_) != std::string::npos;
}

std::string DaemonProcess::LogTail() const {
  const std::string text = Log();
  return text.size() <= kLogTailBytes ? text : "..." + text.substr(text.size() - kLogTailBytes);
}

bool DaemonProcess::WaitForLog(const std::string& text, milliseconds within) const {
  return Await(within, [&] { return Log().find(text) != std::string::npos; });
}

bool DaemonProcess::running() {
  if (pid_ <= 0 || exit_status_) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return true;
  exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

void DaemonProcess::Kill(int signal) {
  if (running()) kill(pid_, signal);
}

std::optional<int> DaemonProcess::Wait(milliseconds within) {
  Await(within, [&] { return !running(); });
  return exit_status_;
}

}  // namespace gpusched::test
