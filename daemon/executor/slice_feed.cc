// Slices are gathered and taken in batches; the reader is woken only where it waits.
#include "executor/slice_feed.h"

#include <utility>

namespace gpusched::executor {

void SliceFeed::Put(const FedSlice& slice) {
  const std::lock_guard lock(mutex_);
  if (batch_.slices.size() >= kCapacity) {
    ++batch_.dropped;
    return;
  }
  batch_.slices.push_back(slice);
  if (waiting_) filled_.notify_one();
  waiting_ = false;
}

SliceFeed::Batch SliceFeed::Take(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  if (batch_.slices.empty()) {
    waiting_ = true;
    filled_.wait_for(lock, limit, [this] { return !batch_.slices.empty(); });
    waiting_ = false;
  }
  return std::exchange(batch_, {});
}

}  // namespace gpusched::executor
