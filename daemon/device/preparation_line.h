// Carries out preparations off the executor's time, those of one session in order.
//
// Quick ones (tables, memory) have a thread of their own, so that nobody waits for another
// session's compiler; slow ones have another, if the device has any. It has a large stack:
// compilers recurse as deep as the expressions they are given.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <variant>
#include <vector>

#include "device/device.h"
#include "gpusched/policy/types.h"

namespace gpusched::device {

inline SessionId SessionOf(const Preparation& preparation) {
  return std::visit([](const auto& what) { return what.session; }, preparation);
}

enum class Pace : std::uint8_t { kQuick, kSlow };

class PreparationLine {
 public:
  using Task = std::function<void()>;  // throws nothing

  // Without `has_slow` everything counts as quick. `at_start` runs on each new thread before any
  // task.
  explicit PreparationLine(bool has_slow, Task at_start = {});
  ~PreparationLine();  // carries out what was appended, then joins
  PreparationLine(const PreparationLine&) = delete;
  PreparationLine& operator=(const PreparationLine&) = delete;

  void Append(SessionId, Pace, Task);

 private:
  struct Waiting {
    Pace pace = Pace::kQuick;
    Task task;
  };
  struct Lane {
    std::deque<Waiting> waiting;
    bool busy = false;  // a thread carries out a task of this session
  };
  using Lanes = std::map<std::uint64_t, Lane>;

  std::deque<Lanes::iterator>& Ready(Pace pace) {
    return pace == Pace::kQuick ? ready_quick_ : ready_slow_;
  }
  void Run(Pace);
  void Close();

  // Guards all below, between the executor, which appends, and the threads, which take.
  std::mutex mutex_;
  std::condition_variable changed_;
  Lanes lanes_;  // by session serial; only those with something waiting or busy
  // The lanes that are not busy, by the pace of what waits first in them.
  std::deque<Lanes::iterator> ready_quick_, ready_slow_;
  bool closing_ = false;
  const bool has_slow_;
  std::vector<pthread_t> threads_;
};

}  // namespace gpusched::device
