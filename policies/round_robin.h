// Round robin by device time: the next session in turn, for a slice plus what it is owed.
//
// Promise: equal device *time* to all who have work, whatever their commands take. Let S be the
// slice and C the longest stretch by which a turn can overrun its budget: what a command that
// cannot be cut takes, or one chunk. While the same n sessions have work any two of them differ
// over any window by at most 2 n (S + C) (FurthestApart): for two sessions and S = 1 ms, 4 ms with
// cuttable work, and 84 ms beside uncuttable commands of 20 ms.
//   Why: count each session's lag from its equal part of all lags, so that these sum to zero. An
//   eligible session takes a turn worth S + lag, or less, and overruns it by C at most, so that no
//   lag ever falls below -(S + C). What one is owed is what the others owe: at most (n - 1)(S + C).
//   A lag therefore moves by at most n (S + C) over a window, and two of them by twice that.
// Weakness: no priorities, no targets: a request waits for everyone's turn.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fair_lags.h"
#include "fluid_order.h"
#include "gpusched/policy/kind.h"
#include "gpusched/policy/policy.h"

namespace gpusched {

extern const PolicyKind kRoundRobin;

class RoundRobin final : public Policy {
 public:
  explicit RoundRobin(Duration slice);
  static std::unique_ptr<Policy> Make(const Parameters&, std::vector<FieldError>& errors);

  // How far two of n sessions may come apart over any window, given the longest overrun.
  static constexpr Duration FurthestApart(int sessions, Duration slice, Duration overrun) {
    return 2 * sessions * (slice + overrun);
  }

  ShareRule share_rule() const override { return ShareRule::kEqual; }
  void SessionAdded(const SessionView&) override;
  void SessionRunnable(const SessionView&) override;
  void SessionIdle(SessionId) override;
  void SessionChanged(const SessionView&) override;
  void SessionRemoved(SessionId) override;
  void Charged(const SessionView&, Duration) override;
  Duration LongestWait(const SessionView&) const override { return lags_.LongestWait(); }
  Decision Decide(const DecisionContext&) override;

 private:
  using Turn = std::uint64_t;

  void Queue(const SessionView&);
  Duration LengthOfTurn(const FluidClock&, SessionId) const;

  const Duration slice_;
  // Whoever owes more than half a slice lets the others go first, so that no turn is shorter.
  const Duration least_turn_;
  // What is owed beyond it is paid over several turns, so that nobody waits for one long one.
  const Duration longest_turn_;
  FluidOrder<Turn> order_;
  FairLags lags_;
  std::vector<Turn> turns_;        // by slot: the place in line
  std::vector<Account> accounts_;  // by slot, as they count
  Turn last_turn_ = 0;
  SessionId chosen_;  // by the latest answer; its next charge costs it its place
};

}  // namespace gpusched
