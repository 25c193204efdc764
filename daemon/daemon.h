// The composition root: makes devices, executors, control and servers, and takes them down in
// order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config.h"
#include "gpusched/status.h"

namespace gpusched::daemon {

class Daemon {
 public:
  struct Options {
    std::string config_path;  // "": no file, defaults and flags alone
    Overrides overrides;
  };
  // Everything runs and listens, or nothing does. The message holds all faults of the
  // configuration.
  static Result<std::unique_ptr<Daemon>> Start(const Options& options);
  // After Close and idle(); frees devices and sockets.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // "unix:..., admin unix:..., virtual-0, policy round_robin(...)".
  std::string Describe() const;
  Duration drain_timeout() const;

  // Reads the file again; what is wrong is logged and changes nothing. Any thread.
  void Reload(const std::string& who);
  // New sessions and jobs are refused; each session ends with its last job.
  void Drain();
  // Every session ends now; what runs is awaited by asking idle().
  void Close();
  bool idle() const;

 private:
  class Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace gpusched::daemon
