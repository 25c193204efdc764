// The interface a policy implements: notices in, one decision out.
//
// A policy owns an order among sessions and nothing else. Queues, run states, deadlines, estimates,
// accounts, caps and clean-up are the core's. All calls come from one thread at a time; none may
// block, read a clock, draw a random number or throw. The core makes every SessionView afresh for
// the call; keep copies, not references.
#pragma once

#include <optional>

#include "gpusched/policy/account.h"
#include "gpusched/policy/types.h"

namespace gpusched {

struct SessionView {
  SessionId id;
  Share share;
  Account account;
  Time waiting_since = kNever;  // since when it could have been served; kNever: nothing to start
  Time deadline = kNever;       // of the job it would run next; kNever: that job has none
  Duration estimated_work{0};   // of the job it would run next, what is not yet started
  Duration next_command{0};     // the shortest unit it can be given next
};

enum class SliceEnd : std::uint8_t {
  kExpired,    // started all its budget allowed
  kRanDry,     // the session had nothing left to start
  kPreempted,  // another session was chosen before the budget was used
  kWithdrawn,  // the session was paused, closed or reached its cap
};

struct SliceReport {
  SessionId session;
  std::uint64_t generation = 0;  // the policy value that granted it
  Time started{}, ended{};       // first command's start, last command's end
  Duration granted{0};
  Duration charged{0};
  std::uint32_t commands = 0;
  bool rescue = false;
  SliceEnd end = SliceEnd::kExpired;
};

// The slice that is starting commands now.
struct CurrentSlice {
  SessionId session;
  Duration granted{0};
  Duration used{0};  // estimate of all it has started
  bool rescue = false;
};

struct DecisionContext {
  Time now{};
  std::optional<CurrentSlice> current;  // empty: nothing to keep, Keep is not an answer
  FluidClock fluid;
  Duration preemption_bound{0};  // the device's setting
  Duration longest_slice{0};     // no longer slice is accepted
};

struct Decision {
  enum class Kind : std::uint8_t { kKeep, kRun, kIdle };
  Kind kind = Kind::kIdle;
  SessionId session{};
  Duration length{0};
  bool rescue = false;
  Time ask_again = kNever;  // ask at the latest then, whatever happens

  static Decision Keep(Time ask_again = kNever) {
    return {.kind = Kind::kKeep, .ask_again = ask_again};
  }
  static Decision Run(SessionId session, Duration length, Time ask_again = kNever) {
    return {.kind = Kind::kRun, .session = session, .length = length, .ask_again = ask_again};
  }
  static Decision Rescue(SessionId session, Duration length, Time ask_again = kNever) {
    return {.kind = Kind::kRun,
            .session = session,
            .length = length,
            .rescue = true,
            .ask_again = ask_again};
  }
  static Decision Idle(Time ask_again) { return {.kind = Kind::kIdle, .ask_again = ask_again}; }
};

// Which fluid reference the policy promises to follow.
enum class ShareRule : std::uint8_t {
  kNone,      // no shares promised: rates 0, lags stand still, "asked" is shown as -
  kEqual,     // all weights equal, min ignored unless strict
  kWeighted,  // weights between min and max
};

class Policy {
 public:
  virtual ~Policy() = default;

  virtual ShareRule share_rule() const = 0;

  // Also after a swap, in id order, account included.
  virtual void SessionAdded(const SessionView&) {}
  virtual void SessionRunnable(const SessionView&) {}  // may be chosen from now on
  virtual void SessionIdle(SessionId) {}  // may not: nothing to start, at its cap, paused
  virtual void SessionChanged(const SessionView&) {}  // share, deadline, band or zero_lag moved
  virtual void SessionRemoved(SessionId) {}
  // When a slice stops starting work (the estimate; if the session can still run, it waits anew
  // since then) and when the slice has drained (the difference, which may be negative). The view
  // has it all already: there is no SessionChanged beside it.
  virtual void Charged(const SessionView&, Duration) {}
  virtual void SliceEnded(const SliceReport&) {}  // drained; statistics, never charging

  // The longest a runnable session as in the view may wait for its next slice, counted from
  // waiting_since; the host ejects a policy that lets it wait longer. kForever: no promise.
  virtual Duration LongestWait(const SessionView&) const { return kForever; }

  // Asked when the current slice has started all it may or something happened that could preempt
  // it. May be asked again before anything has started: an answer changes nothing by itself.
  virtual Decision Decide(const DecisionContext&) = 0;
};

}  // namespace gpusched
