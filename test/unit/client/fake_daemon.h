// A stand-in for the daemon: speaks the wire from inside the test's process, computes nothing.
//
// It greets, keeps the bytes of buffers, carries out copies and fills in the order of submission
// and reports every job done, at once or, with `hold_jobs`, when told to.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpusched/status.h"
#include "gpusched/v1/resources.pb.h"

namespace gpusched::test {

struct FakeDaemonOptions {
  std::string endpoint = {};  // "": a new unix socket
  std::uint32_t window_jobs = 1'024;
  std::uint64_t window_bytes = 64 << 20;
  std::uint64_t memory = 1 << 30;  // an allocation beyond it is refused
  bool hold_jobs = false;
  std::string backend = "fake";
  Status refuse_hello = {};     // not OK: the answer to every greeting
  Status refuse_share = {};     // likewise to every change of share
  Status refuse_template = {};  // likewise to every template, whose jobs are refused too
  Status fail_jobs = {};        // not OK: every job fails with it
};

// What a job looked like when it came.
struct SeenJob {
  std::uint64_t id = 0;
  std::uint32_t queue = 0;
  std::uint64_t template_id = 0;
  std::string tag = {};
  int operations = 0;
  int changes = 0;
  std::chrono::nanoseconds client{0}, deadline{0};
  bool skip_if_late = false;
  std::string first_kernel = {};
  v1::Launch first_launch = {};
};

class FakeDaemon {
 public:
  explicit FakeDaemon(FakeDaemonOptions options = {});
  ~FakeDaemon();

  std::string endpoint() const;
  // Waits until so many jobs have come, over all sessions; false after half a minute.
  bool AwaitJobs(std::size_t count) const;
  std::vector<SeenJob> jobs() const;
  // Kinds of messages in the order in which they came: "hello", "data", "submit", ...
  std::vector<std::string> messages() const;
  bool AwaitMessage(const std::string& kind, std::size_t count = 1) const;

  // Reports the oldest held jobs; those that follow are held again.
  void Release(std::size_t count);
  // Reads nothing more, until it does again.
  void StopReading();
  void ReadAgain();
  // Ends every session with this error.
  void EndSessions(const Status& why);
  // Gone, connections and all, as if killed.
  void Vanish();

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace gpusched::test
