// Waits for one event after the other; a waiting thread costs nothing, a polling one a core.
#include "device/opencl/completion_waiter.h"

#include <algorithm>
#include <utility>

#include "device/device_clock.h"
#include "device/opencl/error.h"

namespace gpusched::device {
namespace {

std::uint64_t Stamp(cl_event event, cl_profiling_info which) {
  cl_ulong stamp = 0;
  clGetEventProfilingInfo(event, which, sizeof stamp, &stamp, nullptr);
  return stamp;
}

}  // namespace

CompletionWaiter::CompletionWaiter(CompletionSink& sink)
    : sink_(sink), thread_([this] { Run(); }) {}

CompletionWaiter::~CompletionWaiter() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void CompletionWaiter::Append(Started started) {
  {
    std::lock_guard lock(mutex_);
    started_.push_back(std::move(started));
  }
  changed_.notify_one();
}

void CompletionWaiter::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !started_.empty(); });
    if (started_.empty()) return;
    const std::vector<Started> some = TakeSome();
    lock.unlock();
    std::vector<cl_event> events;
    for (const Started& started : some) {
      if (started.event) events.push_back(started.event.get());
    }
    // Commands end in the order of their starting. The answer repeats the commands' own status,
    // which is asked for next.
    if (!events.empty()) clWaitForEvents(1, &events.back());
    std::vector<Completion> completions;
    for (const Started& started : some) completions.push_back(CompletionOf(started));
    sink_.Post(std::move(completions));
    lock.lock();
  }
}

std::vector<CompletionWaiter::Started> CompletionWaiter::TakeSome() {
  std::vector<Started> some;
  Duration later{0};
  do {
    some.push_back(std::move(started_.front()));
    started_.pop_front();
    if (started_.empty() || started_.front().expected <= Duration::zero()) break;
    later += started_.front().expected;
  } while (later <= kPatience);
  return some;
}

Completion CompletionWaiter::CompletionOf(const Started& started) {
  Completion completion;
  completion.ticket = started.ticket;
  completion.error = started.error;
  cl_event event = started.event.get();
  Time start = started.submitted, end = started.submitted;
  if (event != nullptr) {
    // Done already, but for a driver whose queue is not in order after all.
    clWaitForEvents(1, &event);
    cl_int status = CL_COMPLETE;
    clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    if (status < 0) completion.error = ClFailure("running the command", status);
    const std::uint64_t ended = Stamp(event, CL_PROFILING_COMMAND_END);
    if (ended != 0) {
      clock_.Observe(started.before, Stamp(event, CL_PROFILING_COMMAND_QUEUED), started.after);
      start = clock_.Map(Stamp(event, CL_PROFILING_COMMAND_START));
      end = clock_.Map(ended);
    } else {  // a failed command may have no stamps
      end = DeviceNow();
    }
  }
  completion.outcome =
      completion.error.ok() ? Completion::Outcome::kDone : Completion::Outcome::kFailed;
  SetTimes(started, start, end, completion);
  return completion;
}

// One command executes after the other, none before it was submitted or after it is reported.
void CompletionWaiter::SetTimes(const Started& started, Time start, Time end,
                                Completion& completion) {
  const Time earliest = std::max(started.submitted, last_ended_);
  const Time latest = std::max(earliest, DeviceNow());
  completion.ended = std::clamp(end, earliest, latest);
  completion.started = std::clamp(start, earliest, completion.ended);
  last_ended_ = completion.ended;
}

}  // namespace gpusched::device
