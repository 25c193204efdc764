// The thread that waits for a device's events, blocked, and reports completions in start order.
//
// Every wake-up takes a processor from whatever computes on it. Where short commands follow each
// other, one wait serves several: while they take what is expected, none is reported later than it
// would be by more than kPatience.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

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
    Duration expected{0};    // likewise
    Time before{}, after{};  // our clock around the enqueueing
  };

  explicit CompletionWaiter(CompletionSink&);
  ~CompletionWaiter();  // reports what was appended, then joins
  CompletionWaiter(const CompletionWaiter&) = delete;
  CompletionWaiter& operator=(const CompletionWaiter&) = delete;

  void Append(Started);

 private:
  // A hundredth of a frame: nobody sees it, and a dozen kernels of 8 us fit.
  static constexpr Duration kPatience{100'000};

  void Run();
  std::vector<Started> TakeSome();  // with mutex_ held and something started
  Completion CompletionOf(const Started&);
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
