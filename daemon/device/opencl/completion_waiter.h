// The thread that waits for a device's events, blocked, and reports completions in start order.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "device/device.h"
#include "device/opencl/clock_map.h"
#include "device/opencl/handle.h"

namespace gpusched::device {

class CompletionWaiter {
 public:
  struct Started {
    Ticket ticket{};
    EventHandle event;  // none: nothing was enqueued, and `error` is the outcome
    Status error;
    Time submitted{};        // as in the command
    Time before{}, after{};  // our clock around the enqueueing
  };

  explicit CompletionWaiter(CompletionSink&);
  ~CompletionWaiter();  // reports what was appended, then joins
  CompletionWaiter(const CompletionWaiter&) = delete;
  CompletionWaiter& operator=(const CompletionWaiter&) = delete;

  void Append(Started);

 private:
  void Run();
  Completion Await(const Started&);
  // Times of a completion that keep the promises of device.h whatever the driver stamped.
  void SetTimes(const Started&, Time started, Time ended, Completion&);

  CompletionSink& sink_;
  // Guards the line between the executor, which appends, and the thread, which takes.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Started> started_;
  bool closing_ = false;

  // The thread's own.
  ClockMap clock_;
  Time last_ended_{};

  std::thread thread_;
};

}  // namespace gpusched::device
