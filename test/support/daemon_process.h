// A real gpuschedd in a process and a temporary folder of its own, for tests and benches.
//
// Nothing of gRPC or of the daemon's code is in here: it is ready when it says so and its sockets
// accept.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/status.h"

namespace gpusched::test {

struct DaemonOptions {
  // Written to <folder>/gpuschedd.yaml and given with --config; "": no file.
  std::string yaml = {};
  // Further flags, in order. --endpoint and --admin are added by DaemonProcess.
  std::vector<std::string> flags = {"--device=virtual"};
  // Also listens on a loopback TCP port that is free when asked; see DaemonProcess::tcp_endpoint.
  bool tcp = false;
  // Set in the daemon's environment, on top of ours.
  std::vector<std::pair<std::string, std::string>> environment = {};
  // "": environment variable GPUSCHED_DAEMON, else the gpuschedd of this build.
  std::string binary = {};
  // "": a new folder under TMPDIR. Give the folder of an earlier daemon to restart in its place;
  // such a folder is left standing at the end.
  std::string folder = {};
  // A loaded two-core machine under a sanitizer needs several seconds; a healthy start takes 0.1 s.
  std::chrono::milliseconds ready_within{30'000};
};

// Owns the process: it is killed, and its folder removed, when this goes. Not thread-safe, and the
// thread that called Start must live as long (the kernel ties the child's life to it).
class DaemonProcess {
 public:
  // Returns once it is ready and both sockets accept; the error carries the end of the daemon's
  // log.
  static Result<std::unique_ptr<DaemonProcess>> Start(DaemonOptions options = {});
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  std::string endpoint() const { return "unix:" + folder_ + "/gpusched.sock"; }
  std::string admin_endpoint() const { return "unix:" + folder_ + "/admin.sock"; }
  // "127.0.0.1:PORT"; only with DaemonOptions::tcp.
  const std::string& tcp_endpoint() const { return tcp_endpoint_; }

  const std::string& folder() const { return folder_; }
  std::string config_path() const { return folder_ + "/gpuschedd.yaml"; }
  // Standard output and standard error together.
  std::string log_path() const { return folder_ + "/daemon.log"; }
  std::string Log() const;
  // Waits until `text` stands in the log; false after `within`.
  bool WaitForLog(const std::string& text, std::chrono::milliseconds within) const;

  pid_t pid() const { return pid_; }
  bool running();
  void Kill(int signal);
  // Until it has ended: its exit status, 128 + signal where a signal ended it; nothing after
  // `within`.
  std::optional<int> Wait(std::chrono::milliseconds within);

 private:
  DaemonProcess() = default;
  Status Spawn(const DaemonOptions& options);
  Status AwaitReady(std::chrono::milliseconds within);
  bool SaidItIsReady() const;
  std::string LogTail() const;

  std::string folder_;
  bool folder_is_ours_ = false;
  std::string tcp_endpoint_;
  std::size_t log_before_ = 0;  // bytes an earlier daemon in the folder has left
  pid_t pid_ = -1;
  std::optional<int> exit_status_;
};

}  // namespace gpusched::test
