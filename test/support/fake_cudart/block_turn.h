// Whose block a device of the stand-in executes next: one at a time, of the highest priority first.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

namespace gpusched::test {

class BlockTurn {
 public:
  // Waits while a block executes, or one of a higher priority waits. As for CUDA, a lower number is
  // a higher priority.
  void Take(int priority) {
    std::unique_lock lock(mutex_);
    waiting_.insert(priority);
    changed_.wait(lock, [&] { return !taken_ && *waiting_.begin() == priority; });
    waiting_.erase(waiting_.begin());
    taken_ = true;
  }
  void Give() {
    {
      const std::lock_guard lock(mutex_);
      taken_ = false;
      if (waiting_.empty()) return;
    }
    changed_.notify_all();
  }

 private:
  // Guards the rest between the threads of the streams.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multiset<int> waiting_;
  bool taken_ = false;
};

}  // namespace gpusched::test
