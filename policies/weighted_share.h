// Weighted shares: of the sessions owed time, the one with the earliest virtual deadline.
//
// Earliest eligible virtual deadline first: I. Stoica and H. Abdel-Wahab, "Earliest Eligible
// Virtual Deadline First", Old Dominion University TR-95-22, 1995. A session is eligible when it
// has had no more than its rate gives it (zero_lag <= par), and its virtual deadline is when the
// fluid reference will have given it one slice from there, or its next command where that is
// longer: due a slice after each, many light sessions with long commands would all come before a
// heavy one. Rates are the core's: weights water-filled between `min` and `max`. A session that
// closes spreads its lag over the rest; one that only has no work keeps it. A slice that has had
// its session's due ends early when somebody comes who is owed time, or who sends one small request
// after the other would get ever less.
//
// Promise: over any window T in which a session has work, what it got differs from what it asked by
// at most 2 L / T of the device (FurthestOff), where L is the longest slice or uncuttable command:
// 0.2 points over 1 s and 2 points over 100 ms with slices of 1 ms, from the first second on.
//   Why: with slices of at most L and integer rates a lag stays within L of par (theorem 1 of the
//   paper: a request is done at most L after its virtual deadline, and none starts before its
//   holder is eligible). While the same sessions have work par stands still. Got - asked over a
//   window is the lag at its start less the lag at its end: at most 2 L.
//   One that comes enters with a lag of at most L, or what it had when the policy came
//   (fair_lags.h).
//   When one comes or goes, par moves for each of the others by their rate's part of what that one
//   is away from par. Each move may first leave a session so much further away, and then takes it
//   as far: M of such moves while a session has work add up to 2 M. With 2,000 changes a second of
//   a session that asks for nearly all, that is much: nothing can be given back meanwhile.
//   A command in one piece that nobody has measured yet is asked for like a slice, whatever it
//   takes: each session's first one may come between, and they add up, too. And each time a strict
//   session rests, all together may run ahead by what they save up (limits.idle_burst, twice the
//   longest command in one piece), of which one may have all if the others stand at their max.
// Weakness: shares, not latency: a request waits up to its virtual deadline, slice / rate, and more
// if it needs more than one slice.
#pragma once

#include <memory>
#include <vector>

#include "fair_lags.h"
#include "fluid_order.h"
#include "gpusched/policy/kind.h"
#include "gpusched/policy/policy.h"

namespace gpusched {

extern const PolicyKind kWeightedShare;

class WeightedShare final : public Policy {
 public:
  WeightedShare(Duration slice, Duration window);
  static std::unique_ptr<Policy> Make(const Parameters&, std::vector<FieldError>& errors);

  // The most by which got differs from asked over any window, as device time. `moved`: by how much
  // par moved in all for the session since it has had work, and how far it came from it;
  // `besides`: what commands in one piece took in all that nobody had measured, and what was saved
  // up beside strict sessions at rest.
  static constexpr Duration FurthestOff(Duration longest, Duration moved = Duration(0),
                                        Duration besides = Duration(0)) {
    return 2 * (longest + moved) + besides;
  }

  ShareRule share_rule() const override { return ShareRule::kWeighted; }
  void SessionAdded(const SessionView&) override;
  void SessionRunnable(const SessionView&) override;
  void SessionIdle(SessionId) override;
  void SessionChanged(const SessionView&) override;
  void SessionRemoved(SessionId) override;
  void Charged(const SessionView&, Duration) override;
  Duration LongestWait(const SessionView&) const override { return lags_.LongestWait(); }
  Decision Decide(const DecisionContext&) override;

 private:
  void Queue(const SessionView&);
  bool HasHadItsDue(const FluidClock&, const CurrentSlice&) const;

  const Duration length_;
  FluidOrder<FluidTime> order_;  // by virtual deadline
  FairLags lags_;
  std::vector<Account> accounts_;  // by slot, as they count
};

}  // namespace gpusched
