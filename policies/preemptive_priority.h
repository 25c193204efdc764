// Preemptive priority: the highest priority first, and within one the earliest deadline that can be
// kept.
//
// Within a priority come first the jobs that can still be on time (deadline - now >= work left), by
// earliest deadline, then the late ones: a job that is late anyway makes no other late. Of the late
// ones those with the shortest target come first, then the oldest: where there is too much to do,
// the many short requests get over it, and what is late for long is what takes long (fixed order by
// target: J. Y.-T. Leung and J. Whitehead, Performance Evaluation 2(4), 1982). A job without a
// target should be served `starvation_bound` after its session began to wait. A higher priority
// preempts at once; at equal priority an earlier deadline only if the current job still meets its
// own (earliest deadline first: C. L. Liu and J. W. Layland, JACM 20(1), 1973).
//
// Promise: a higher arrival waits at most one preemption bound plus one rescue. Rescues keep the
// others alive: whoever waited `starvation_bound` gets, oldest first, one slice of at most the
// preemption bound (or one command that cannot be cut), as long as rescues take no more than
// `background_share` plus one slice of any second. A session with work therefore waits at most
// starvation_bound + the summed rescues of all who wait / background_share + one preemption bound
// (those who began to wait together are due together, hence the sum). With background_share 0 there
// are no rescues, and no promise. Weakness: no shares: a saturating higher priority leaves the
// others only the background share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "gpusched/policy/indexed_heap.h"
#include "gpusched/policy/kind.h"
#include "gpusched/policy/policy.h"
#include "rescue_budget.h"

namespace gpusched {

extern const PolicyKind kPreemptivePriority;

class PreemptivePriority final : public Policy {
 public:
  struct Settings {
    Duration slice_min = std::chrono::milliseconds(1);
    Duration slice_max = std::chrono::milliseconds(20);
    Duration starvation_bound = std::chrono::seconds(1);
    Rate background_share = kWholeDevice / 20;
  };
  explicit PreemptivePriority(const Settings&);
  static std::unique_ptr<Policy> Make(const Parameters&, std::vector<FieldError>& errors);

  ShareRule share_rule() const override { return ShareRule::kNone; }
  void SessionAdded(const SessionView&) override;
  void SessionRunnable(const SessionView&) override;
  void SessionIdle(SessionId) override;
  void SessionChanged(const SessionView&) override;
  void SessionRemoved(SessionId) override;
  void Charged(const SessionView&, Duration) override;
  void SliceEnded(const SliceReport&) override;
  Duration LongestWait(const SessionView&) const override;
  Decision Decide(const DecisionContext&) override;

 private:
  // What a decision needs of a session with work.
  struct Candidate {
    SessionId id;
    std::int32_t priority = 0;
    Time latest_start{};  // from then on it is late
    Time since{};         // arrival of its job; without a target: since it began to wait
    Time waiting_since{};
    Duration work{0};    // of its job, not yet started
    Duration target{0};  // of the session; without one, the starvation bound
  };
  // Few words, so that a place of the heap and its children share a cache line or two.
  struct Rank {
    Time when{};  // the deadline; if late, since when
    std::uint64_t serial = 0;
    std::int64_t order = 0;  // by priority, within one the late ones last, of these by target

    static Rank InTime(const Candidate& candidate, Time deadline) {
      return {deadline, candidate.id.serial, -2 * std::int64_t{candidate.priority} * kOneUp};
    }
    static Rank Late(const Candidate& candidate) {
      const Rank in_time = InTime(candidate, candidate.since);
      const std::int64_t target = std::min(candidate.target.count(), kOneUp - 1);
      return {in_time.when, in_time.serial, in_time.order + kOneUp + target};
    }
    bool late() const { return (order >> kTargetBits) % 2 != 0; }
    friend bool operator<(const Rank& a, const Rank& b) {
      return std::tie(a.order, a.when, a.serial) < std::tie(b.order, b.when, b.serial);
    }

   private:
    static constexpr int kTargetBits = 53;  // ns: over a hundred days
    static constexpr std::int64_t kOneUp = std::int64_t{1} << kTargetBits;
    Rank(Time at, std::uint64_t of, std::int64_t place) : when(at), serial(of), order(place) {}
  };
  struct Waiting {
    Time since{};
    std::uint64_t serial = 0;
    friend bool operator<(const Waiting& a, const Waiting& b) {
      return std::tie(a.since, a.serial) < std::tie(b.since, b.serial);
    }
  };
  using Slot = std::uint32_t;

  void Queue(const SessionView&);
  const CurrentSlice* Unfinished(const DecisionContext&) const;
  Slot First(Time now, const CurrentSlice* current);
  bool IsLate(const Candidate&, Time now, const CurrentSlice* current) const;
  bool Preempts(const Candidate& first, const CurrentSlice& current, Time now) const;
  const Candidate* LongestWaiting(Slot first, const std::optional<CurrentSlice>& current) const;
  Duration SliceFor(SessionId) const;

  const Settings settings_;
  RescueBudget budget_;
  std::vector<Candidate> candidates_;  // by slot
  IndexedHeap<Rank> order_;
  IndexedHeap<Waiting> waiting_;  // the same sessions

  SessionId rescued_;           // by the latest answer, if it was acted upon
  bool rescue_runs_ = false;    // as of the latest decision: it was
  bool rescue_drains_ = false;  // it has stopped, and what it cost is not known yet
  SessionId latest_ended_;      // whose slice drained last, and what it would get next in a row
  Duration next_in_row_{0};
  Time now_{};  // of the latest decision
  Duration preemption_bound_{0};
  Duration longest_rescue_{0};
  std::int64_t most_waiting_ = 0;
};

}  // namespace gpusched
