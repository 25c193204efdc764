// The mailbox of one device, and the baton: who may run its executor.
//
// One mutex guards the items and the flag `held`. Whoever appends while nobody holds the baton gets
// it and runs; everyone else leaves his item for the holder. So no thread is woken to run a turn.
//
// Bounded by its senders: one frame a stream, one completion a command in flight, one tick of the
// timer, one request a control thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "core/event.h"
#include "device/device.h"
#include "executor/port.h"
#include "gpusched/status.h"

namespace gpusched::executor {

struct FrameArrived {
  std::shared_ptr<SessionPort> port;
};
struct StreamClosed {
  std::shared_ptr<SessionPort> port;
  Status why;
};
// The stream has written so many bytes of results to the wire.
struct ResultsSent {
  std::shared_ptr<SessionPort> port;
  std::uint64_t bytes = 0;
};
struct TimerFired {};
// Anything else that must be done by the holder: an operator's question or order.
struct Request {
  std::function<void()> run;
};

using Item =
    std::variant<FrameArrived, device::Completion, device::Prepared, StreamClosed, ResultsSent,
                 TimerFired, Request, core::PolicyChanged, device::Lost, device::Restored>;

// Made before its executor, since a device wants its sink first: until LendTo, items only gather.
class Mailbox final : public device::CompletionSink {
 public:
  // From now on `run` is called by whoever is handed the baton. The caller holds it first.
  void LendTo(std::function<void()> run) { run_ = std::move(run); }

  // Any thread. Runs the executor here if nobody else does.
  void Bring(Item item);

  // For the holder. Take: what has come since; false if nothing had. LayDown: gives the baton back;
  // false if something came meanwhile.
  bool Take(std::vector<Item>& items);
  bool LayDown();

  // For whoever ends the executor: takes the baton for good, once the turn that may still be on has
  // laid it down. What is brought from then on stays in the mailbox.
  void TakeForGood();

  void Post(device::Completion completion) override { Bring(std::move(completion)); }
  void Post(std::vector<device::Completion> all) override;
  void Post(device::Prepared prepared) override { Bring(std::move(prepared)); }
  void Post(device::Lost lost) override { Bring(std::move(lost)); }
  void Post(device::Restored restored) override { Bring(std::move(restored)); }

 private:
  // Held for a few moves only, never while a turn runs.
  std::mutex mutex_;
  std::vector<Item> items_;
  bool held_ = true;
  bool awaited_ = false;
  std::condition_variable laid_down_;
  std::function<void()> run_;
};

}  // namespace gpusched::executor
