// Follows the daemon's slice ledger on a thread of its own and keeps every slice.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "ctl/admin_client.h"
#include "support/ledger.h"

namespace gpusched::bench {

class LedgerRecorder {
 public:
  // Every slice that starts after this returned is recorded.
  static Result<std::unique_ptr<LedgerRecorder>> Start(admin::AdminClient& admin);
  ~LedgerRecorder();

  // Waits until a slice of the device that ended after `time` (daemon's clock) was recorded, so
  // that everything before it is there; false after `within`. Only while the device works.
  bool AwaitRecorded(int device, std::chrono::nanoseconds time, std::chrono::nanoseconds within);

  std::vector<admin::Slice> Slices() const;
  // Of one device.
  Ledger LedgerOf(int device) const;
  // Slices the daemon dropped because this was too slow: figures made from the rest are void.
  std::uint64_t dropped() const;

 private:
  class Follower;
  explicit LedgerRecorder(std::unique_ptr<Follower> follower);
  std::unique_ptr<Follower> follower_;
};

}  // namespace gpusched::bench
