// All sessions of all devices: where a new one goes, and which one an operator means.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/limits.h"
#include "executor/messages.h"
#include "executor/snapshot.h"
#include "gpusched/status.h"

namespace gpusched::control {

class SessionDirectory {
 public:
  // The executors outlive it, in the order of their indexes.
  SessionDirectory(std::vector<executor::Executor*> executors, executor::SessionLimits limits);

  // The device for a new session: by uuid, by index, or "auto" ("" too): of those with room the one
  // with the fewest sessions that have work, then the fewest sessions, then the most free memory.
  // The session is counted there at once, and `hello` carries its quota from now on. Any thread.
  Result<executor::Executor*> Place(executor::Hello& hello);

  // Control threads.
  std::vector<executor::Snapshot> Snapshots() const;
  std::vector<executor::ModuleSnapshot> Modules() const;
  struct Found {
    executor::Executor* executor = nullptr;
    std::uint64_t session = 0;
    std::string name;
  };
  // By id ("7", or "id:7" where another is named 7) or by name. What means several is refused with
  // the ids, what means none with what there is.
  Result<Found> Find(const std::string& selector) const;
  Result<Found> Pause(const std::string& selector, bool paused, const std::string& who);
  Result<Found> Kill(const std::string& selector, const std::string& who);

  void SetLimits(const executor::SessionLimits& limits);
  const std::vector<executor::Executor*>& executors() const { return executors_; }

 private:
  Result<executor::Executor*> Choose(const std::string& device, std::uint64_t memory) const;
  Result<executor::Executor*> Named(const std::string& device) const;

  const std::vector<executor::Executor*> executors_;
  // Between the poller, which places, and a reload, which changes the limits; a leaf.
  mutable std::mutex mutex_;
  executor::SessionLimits limits_;
};

}  // namespace gpusched::control
