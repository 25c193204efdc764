// The scheduler of one device: a value that turns facts into orders.
//
// It has no thread, no clock and no I/O. Two drivers run it: the executor (real time, real device)
// and the simulator. A driver hands in facts with Handle, then calls Advance and carries out the
// actions in order, and calls Advance again at NextWakeup at the latest. Time never goes back
// between calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/action.h"
#include "core/event.h"
#include "core/limits.h"
#include "gpusched/policy/policy.h"

namespace gpusched::core {

// What the scheduler must know of the device it orders about.
struct DeviceTraits {
  // Commands of one class execute one after the other, as started (priority_class.h). One of a
  // higher class may execute beside those of lower ones. 1: all keep order.
  std::uint32_t priority_classes = 1;
  bool can_interrupt = false;              // Interrupt has an effect
  Duration shortest_useful_chunk{50'000};  // no shorter chunk is cut: its overhead would dominate
  std::uint64_t probe_units = 1;           // blocks in the first chunk of an unknown kernel
  Duration preemption_bound{1'000'000};  // the longest a higher arrival may wait for work in flight
};

// A session as an operator sees it; all totals since it opened.
struct SessionStatus {
  SessionId session;
  Share share;
  Account account;
  Duration asked{0};         // fluid service; meaningless where the policy promises none
  Duration busy{0};          // sum of its command times
  Duration longest_wait{0};  // longest time runnable without a slice
  Duration longest_uncuttable{0};
  bool paused = false, at_cap = false, runnable = false;
  std::uint64_t jobs_waiting = 0, jobs_running = 0, jobs_done = 0, jobs_failed = 0,
                jobs_cancelled = 0, jobs_skipped = 0, jobs_late = 0;
  std::uint64_t slices = 0, preempted = 0, rescues = 0, commands = 0;
  Duration bound_in_force{0};
};

struct DeviceStatus {
  Duration charged{0}, busy{0};
  std::uint64_t commands = 0, slices = 0, preemptions = 0, rescues = 0, ejections = 0;
  std::uint32_t in_flight = 0;
  bool lost = false;
  bool promises_shares = false;  // of the policy in force
  PolicySpec policy;
};

class Scheduler {
 public:
  Scheduler(const Limits&, const DeviceTraits&, PolicySpec, std::unique_ptr<Policy>);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void Handle(Time now, Event&&);  // one fact in; may call the policy's notices
  void Advance(Time now, std::vector<Action>& actions);  // decide; append orders
  Time NextWakeup() const;                               // kNever: nothing to wait for

  // For operators, not for the hot path: in order of opening.
  std::vector<SessionStatus> Sessions(Time now) const;
  std::optional<SessionStatus> Find(Time now, SessionId) const;
  DeviceStatus device() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace gpusched::core
