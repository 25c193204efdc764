// The sessions a fair policy may choose from, over both fluid clocks.
#pragma once

#include <cstdint>

#include "gpusched/policy/account.h"
#include "gpusched/policy/policy.h"
#include "gpusched/policy/run_queue.h"

namespace gpusched {

// One run queue for each clock. A session stands in the one of its rate band; `Key` orders sessions
// within a queue, and the policy says which of the two firsts comes first.
template <typename Key>
class FluidOrder {
 public:
  using Entry = typename RunQueue<Key>::Entry;

  void Reserve(std::uint32_t slot) {
    free_.Reserve(slot);
    clamped_.Reserve(slot);
  }
  bool Contains(SessionId id) const {
    return free_.Contains(id.slot) || clamped_.Contains(id.slot);
  }

  void Set(const SessionView& view, FluidTime eligible, const Key& key) {
    const bool clamped = view.account.band == RateBand::kClamped;
    (clamped ? free_ : clamped_).Remove(view.id.slot);
    (clamped ? clamped_ : free_).Set({view.id, eligible, key, view.account.last_served});
  }
  void Remove(SessionId id) {
    free_.Remove(id.slot);
    clamped_.Remove(id.slot);
  }

  // The first of the eligible; if there is none, who will be eligible first; nullptr: nobody is
  // there. `clamped_first(clamped, free)` compares the keys of two eligible sessions.
  template <typename ClampedFirst>
  const Entry* First(const FluidClock& clock, ClampedFirst clamped_first) {
    free_.Promote(clock.free_par);
    clamped_.Promote(clock.clamped_par);
    const Entry* free = free_.First();
    const Entry* clamped = clamped_.First();
    if (free != nullptr && clamped != nullptr)
      return clamped_first(*clamped, *free) ? clamped : free;
    if (free != nullptr) return free;
    if (clamped != nullptr) return clamped;
    free = free_.Next();
    clamped = clamped_.Next();
    if (free == nullptr || clamped == nullptr) return free != nullptr ? free : clamped;
    return ClampedIsEarlier(clock, clamped->eligible, free->eligible) ? clamped : free;
  }

  // Whether the clamped clock shows one reading before the free clock shows the other. A free clock
  // that stands still (strict sessions have it all) never gets anywhere.
  static bool ClampedIsEarlier(const FluidClock& clock, FluidTime clamped, FluidTime free) {
    return clock.free_rate == 0 ||
           clock.Until(RateBand::kClamped, clamped) < clock.Until(RateBand::kFree, free);
  }

 private:
  RunQueue<Key> free_;
  RunQueue<Key> clamped_;
};

}  // namespace gpusched
