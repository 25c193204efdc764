// The scheduler's state and the steps it is made of: facts.cc takes facts in, orders.cc gives
// orders.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/bounds.h"
#include "core/cap.h"
#include "core/fluid.h"
#include "core/policy_host.h"
#include "core/records.h"
#include "core/scheduler.h"
#include "core/session.h"
#include "core/slice.h"
#include "gpusched/policy/indexed_heap.h"

namespace gpusched::core {

class Scheduler::Core {
 public:
  Core(const Limits&, const DeviceTraits&, PolicySpec, std::unique_ptr<Policy>);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  void Handle(Time now, Event&& event);
  void Advance(Time now, std::vector<Action>& actions);
  Time NextWakeup() const;

  std::vector<SessionStatus> Sessions(Time now) const;
  std::optional<SessionStatus> Find(Time now, SessionId) const;
  DeviceStatus device() const;

 private:
  // Facts (facts.cc).
  void On(SessionOpened&);
  void On(SessionChanged&);
  void On(SessionClosed&);
  void On(JobSubmitted&);
  void On(JobCancelled&);
  void On(Paused&);
  void On(Resumed&);
  void On(CommandFinished&);
  void On(DeviceLost&);
  void On(DeviceRestored&);
  void On(PolicyChanged&);
  void On(SettingsChanged&);
  std::optional<Status> Refusal(const Job&) const;
  Duration ChargeOf(Flight&, Time ended);
  void Settle(Session&, const Flight&, const CommandFinished&, Duration charged);
  void Learn(Session&, const Flight&, Duration took, Duration charged);
  void Rewind(Session&, const Flight&, std::uint64_t next);
  void Cancel(Session&, Job*, const Status& why);
  void DropUnstarted(Session&, Job&);
  void EndJob(Session&, Job*, JobOutcome);
  void EndJobIfDrained(Session&, Job*);
  void ReleaseGone();
  void Release(Session&);
  void ReplacePolicy(PolicySpec, std::unique_ptr<Policy>);
  void SplitSlices();
  void Eject(std::string why);
  void SetStrictMin(Rate);
  void KeepFree(Session&, Rate);

  // Run states (states.cc).
  Session* Lookup(SessionId) const;
  Job* NextJob(const Session&) const;
  void QueueMoved(Session&, std::uint32_t queue);
  void RefreshSkip(Session&);
  void Refresh(Session&);  // tells the policy what of the session moved
  bool GroupsLet(const Session&) const;
  bool CanRun(const Session&) const;
  void SetRunnable(Session&, bool);
  void SetPatience(Session&, const SessionView&);
  SessionView View(const Session&) const;
  SessionStatus StatusOf(const Session&) const;
  Duration NextCommand(const Session&, const Job&) const;
  void TellMoved();  // sessions whose rate changed band
  void TellAll();    // their lags moved at once
  void RefreshCap(Session&);
  void FillCap(Session&);
  void TakeFromCaps(Session&, Duration expected);
  void CorrectCaps(Session&, Duration expected, Duration busy);
  Duration CapBurst() { return limits_.cap_burst + cap_wait_.At(now_); }
  Duration IdleBurst();
  void RefreshGroups();
  void RefreshAll();

  // Time (states.cc).
  void AdvanceFluid(Time now);
  bool DeviceStalls(Time now) const;
  void ReconcileFluid();
  Duration Executing() const;  // what the commands in flight have had so far
  template <typename Give>
  void DivideSinceLastEnd(Time until, const Flight* ended, Give give);
  bool OnlyCapsHoldBack() const {
    return runnable_count_ == 0 &&
           (!cap_ends_.empty() || beside_strict_.reached() || beside_idle_.reached());
  }
  void Tick();
  void SkipLate(Session&);

  // Orders (orders.cc).
  enum class Step : std::uint8_t { kStarted, kNoRoom, kExpired, kRanDry };
  struct Piece {  // a command that could start now
    Job* job = nullptr;
    std::uint64_t first = 0, count = 0;
    Duration estimate{0}, at_most{0};
    bool alone = false;
    bool wait_for_next_slice = false;  // the budget is used up
  };
  void Dispatch();
  bool MayDecide() const;
  bool ordered() const { return traits_.priority_classes == 1; }
  bool ReconsiderCurrent();  // false: nothing more can be done now
  bool OpenNext();           // likewise
  Decision Ask(const std::optional<CurrentSlice>&);
  Step StartNext();
  Piece Cut(const Session&, Job&, Duration remaining, bool nothing_started) const;
  bool Fits(const Session&, const Piece&) const;
  bool FitsItsClass(const Session&, const Piece&) const;
  void Start(Session&, std::uint32_t slice, const Piece&);
  void OpenSlice(Session&, const Decision&);
  void StopSlice(SliceEnd);
  void Stop(const Flight&);
  Duration Apply(Slice&, Duration total);
  void DrainSlice(std::uint32_t slice);
  std::optional<std::string> Starved();

  Slice& current() { return slices_[current_]; }
  bool has_current() const { return current_ != kNone; }

  static constexpr std::uint32_t kNone = UINT32_MAX;

  Records records_;
  const Limits limits_;
  const DeviceTraits traits_;
  Time now_{};
  std::vector<Action> pending_;  // orders that facts gave rise to

  std::vector<std::unique_ptr<Session>> sessions_;  // by slot
  std::vector<SessionId> by_age_;                   // in order of opening
  std::uint32_t runnable_count_ = 0;
  std::vector<std::uint32_t> leaving_;  // slots of closing sessions that may have drained

  PolicyHost host_;
  Fluid fluid_;
  Time fluid_at_{};
  Duration fluid_time_{0};  // that the fluid was advanced by
  Duration fluid_due_{0};   // charged time, and time in which only caps kept the device idle
  Time patience_{};         // a clock that leaves out stalls of process and device
  Bounds bounds_;

  // What strict sessions leave to all others together, and what those of them without work leave
  // to everybody.
  GroupCap beside_strict_, beside_idle_;
  Rate strict_min_ = 0, kept_free_ = 0;
  RecentLongest cap_wait_;        // twice what commands in one piece take
  IndexedHeap<Time> cap_ends_;    // sessions at their cap, by when it ends
  IndexedHeap<Time> skip_at_;     // first jobs that are to be skipped when late
  IndexedHeap<Time> starved_at_;  // runnable sessions, by when their wait breaks the promise

  std::vector<Slice> slices_;  // a pool
  std::vector<std::uint32_t> free_slices_;
  std::uint32_t current_ = kNone;
  std::uint64_t slice_serial_ = 0;
  bool reconsider_ = false;  // something happened that could preempt
  Time ask_again_ = kNever;
  bool declined_ = false;  // what the policy chose did not fit, and nothing has happened since

  std::vector<Flight> flights_;  // in order of start
  Duration flight_time_{0};      // their estimates plus spreads
  std::uint32_t alone_in_flight_ = 0;
  std::uint64_t last_ticket_ = 0;
  Time device_end_{};               // end of the last command that finished
  std::uint64_t device_slice_ = 0;  // serial of its slice; 0: none goes on
  Duration longest_command_{0};
  bool lost_ = false;

  DeviceStatus totals_;
};

}  // namespace gpusched::core

// Inside a Core: what only a fault of our own can break.
#define GPUSCHED_CORE_CHECK(condition) \
  ((condition) ? void(0) : records_.Die(__FILE__, __LINE__, #condition))
