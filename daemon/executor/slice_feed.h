// A watcher's buffer of finished slices: the executor puts, a control thread takes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "gpusched/policy/policy.h"

namespace gpusched::executor {

struct FedSlice {
  std::uint32_t device = 0;
  SliceReport slice;
};

class SliceFeed {
 public:
  // A watcher that falls further behind loses the newest and is told how many.
  static constexpr std::size_t kCapacity = 65'536;

  struct Batch {
    std::vector<FedSlice> slices;
    std::uint64_t dropped = 0;
  };

  // The holder of a baton, of any device.
  void Put(const FedSlice& slice);
  // Waits until there is something, at most `limit`.
  Batch Take(std::chrono::milliseconds limit);

 private:
  // Held for a copy or a swap; a leaf.
  std::mutex mutex_;
  std::condition_variable filled_;
  Batch batch_;
  bool waiting_ = false;
};

}  // namespace gpusched::executor
