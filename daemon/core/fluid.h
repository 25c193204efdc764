// The fluid reference: every session that has work, served at its water-filled rate at once.
//
// Rates are weight x level, clamped between min and max; the level is where they sum to the device
// (less the min of strict sessions without work). When a session comes or goes the level walks in
// one direction past the bounds it crosses, so a change costs O(log n) and one step for each
// session that becomes clamped or free. Lags live on the two clocks of policy/account.h, so time
// passing costs O(1). Water-filling with bounds: Bertsekas and Gallager, Data Networks, 1992,
// section 6.5.2 (max-min).
#pragma once

#include <cstdint>
#include <vector>

#include "core/limits.h"
#include "gpusched/policy/account.h"
#include "gpusched/policy/indexed_heap.h"
#include "gpusched/policy/policy.h"
#include "gpusched/policy/types.h"

namespace gpusched::core {

class Fluid {
 public:
  // `largest_lag` bounds every lag; `carried_claim` what a session is still owed when it runs out
  // of work: it could not use more while it had work, so the rest is spread like that of one that
  // leaves.
  Fluid(Duration largest_lag, Duration carried_claim)
      : largest_lag_(largest_lag), carried_claim_(carried_claim) {}

  // A session without work and with no lag.
  void Add(std::uint32_t slot, const Share&);
  // Its lag is spread over the sessions that have work, in proportion to their rates.
  void Remove(std::uint32_t slot);
  void SetShare(std::uint32_t slot, const Share&);
  void SetActive(std::uint32_t slot, bool has_work);
  void SetRunnable(std::uint32_t slot, bool runnable);  // counts for par; implies nothing else
  // Every session keeps its lag; rates start anew under the rule.
  void SetRule(ShareRule rule);

  void Advance(Duration fluid_time);                  // may be negative: a correction
  void Charge(std::uint32_t slot, Duration charged);  // under ShareRule::kNone lags stand still

  FluidClock Clock() const;
  // band, rate, lag, weight and zero_lag; the rest is the caller's.
  void Describe(std::uint32_t slot, Account& account) const;
  Duration Lag(std::uint32_t slot) const;
  // Its lag, or what it is behind the runnable sessions' par, if that is more.
  Duration Owed(std::uint32_t slot) const;
  Duration Asked(std::uint32_t slot) const;  // integral of the rate since Add
  bool active(std::uint32_t slot) const { return members_[slot].active; }

  // Sessions whose band changed since the last call: their keys in a policy's queues are void.
  std::vector<std::uint32_t>& moved() { return moved_; }

 private:
  struct Fraction {  // numerator / denominator, both small enough to be multiplied
    std::int64_t numerator = 0, denominator = 1;
    friend bool operator<(Fraction a, Fraction b) {
      return Wide{a.numerator} * b.denominator < Wide{b.numerator} * a.denominator;
    }
  };
  struct Greater {
    bool operator()(Fraction a, Fraction b) const { return b < a; }
  };
  enum class Place : std::uint8_t { kOut, kAtMin, kFree, kAtMax };
  struct Member {
    Share share;
    bool present = false, active = false, runnable = false;
    Place place = Place::kOut;
    std::int64_t weight = 1;  // that counts under the rule
    Rate min = 0, max = kWholeDevice;
    FluidTime zero_lag = 0;  // on its band's clock, while active under a rule with shares
    Duration lag{0};         // otherwise
    Duration applied{0};     // charges that went into the lag
    Duration given{0};       // lag that came neither from rate nor from charge
  };

  void ApplyRule(Member&) const;
  void Enter(std::uint32_t slot);
  void Leave(std::uint32_t slot);
  void PutAt(std::uint32_t slot, Place);
  void TakeFrom(std::uint32_t slot);
  void MoveTo(std::uint32_t slot, Place);
  void FindLevel();
  bool StepUp();
  bool StepDown();
  Fraction Target() const;  // the level at which the free sessions use what the clamped leave
  void CountRunnable(const Member&, int sign);
  Duration LagOf(const Member&) const;
  void SetLag(Member&, Duration lag);
  Account Band(const Member&) const;
  Rate Reserved() const;

  static RateBand BandOf(Place place) {
    switch (place) {
      case Place::kOut: return RateBand::kNone;
      case Place::kFree: return RateBand::kFree;
      case Place::kAtMin:
      case Place::kAtMax: return RateBand::kClamped;
    }
    return RateBand::kNone;
  }
  static Rate ClampedRate(const Member& m) { return m.place == Place::kAtMin ? m.min : m.max; }

  const Duration largest_lag_, carried_claim_;
  ShareRule rule_ = ShareRule::kNone;
  std::vector<Member> members_;
  std::vector<std::uint32_t> moved_;

  FluidTime free_clock_ = 0, clamped_clock_ = 0;
  Fraction level_;  // bands are as at this level
  std::int64_t free_weight_ = 0;
  Rate clamped_rate_ = 0;  // sum over clamped members
  Rate reserved_ = 0;      // sum of min over strict sessions without work
  // The free members' bounds as levels, and the levels at which clamped ones become free.
  IndexedHeap<Fraction, Greater> free_to_min_;
  IndexedHeap<Fraction> free_to_max_;
  IndexedHeap<Fraction> min_to_free_;
  IndexedHeap<Fraction, Greater> max_to_free_;

  // Over runnable members: summed weight and weight x zero_lag of the free, rate and rate x
  // zero_lag of the clamped; par follows from them in O(1).
  std::int64_t runnable_weight_ = 0;
  Rate runnable_rate_ = 0;
  Wide free_moment_ = 0, clamped_moment_ = 0;
};

}  // namespace gpusched::core
