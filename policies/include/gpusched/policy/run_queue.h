// The sessions a policy may choose from on one fluid clock: those not yet eligible, then by key.
//
// A session becomes eligible when par passes its reading. Two indexed heaps hold the two groups, so
// a session enters, moves and leaves in O(log n), and only when something happened to itself; par
// moves for all of them at once. Ties go to the least recently served, then to the first that
// opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "gpusched/policy/account.h"
#include "gpusched/policy/indexed_heap.h"
#include "gpusched/policy/types.h"

namespace gpusched {

template <typename Key, typename Less = std::less<Key>>
class RunQueue {
 public:
  struct Entry {
    SessionId id;
    FluidTime eligible = 0;  // from this reading on it may be chosen
    Key key{};               // among the eligible the least comes first
    Time last_served{};
  };

  // Makes room for `slot` and every lower one; nothing else allocates.
  void Reserve(std::uint32_t slot) {
    if (slot >= entries_.size()) entries_.resize(std::size_t{slot} + 1);
    later_.Reserve(slot);
    eligible_.Reserve(slot);
  }

  bool Contains(std::uint32_t slot) const {
    return later_.Contains(slot) || eligible_.Contains(slot);
  }
  bool empty() const { return later_.empty() && eligible_.empty(); }
  std::size_t size() const { return later_.size() + eligible_.size(); }

  // Inserts the session or gives it a new place. Its slot is reserved.
  void Set(const Entry& entry) {
    const std::uint32_t slot = entry.id.slot;
    entries_[slot] = entry;
    if (entry.eligible <= par_) {
      later_.Remove(slot);
      eligible_.Set(slot, {entry.key, entry.last_served, entry.id.serial});
    } else {
      eligible_.Remove(slot);
      later_.Set(slot, {entry.eligible, entry.last_served, entry.id.serial});
    }
  }

  void Remove(std::uint32_t slot) {
    later_.Remove(slot);
    eligible_.Remove(slot);
  }

  // Moves par. Forwards, whoever it passes becomes eligible: once for each time a session was given
  // a place beyond it. Backwards (the set changed, or an estimate was too high) only those are
  // moved back that stand in the way of the first: whoever is further down is met before it can be
  // chosen.
  void Promote(FluidTime par) {
    par_ = par;
    while (!later_.empty() && later_.top().key <= par) {
      const Entry& entry = entries_[later_.top_slot()];
      later_.Remove(entry.id.slot);
      eligible_.Set(entry.id.slot, {entry.key, entry.last_served, entry.id.serial});
    }
    while (!eligible_.empty()) {
      const Entry& entry = entries_[eligible_.top_slot()];
      if (entry.eligible <= par) break;
      eligible_.Remove(entry.id.slot);
      later_.Set(entry.id.slot, {entry.eligible, entry.last_served, entry.id.serial});
    }
  }

  // The first of the eligible, and of the others the one that will be eligible first; nullptr:
  // none.
  const Entry* First() const {
    return eligible_.empty() ? nullptr : &entries_[eligible_.top_slot()];
  }
  const Entry* Next() const { return later_.empty() ? nullptr : &entries_[later_.top_slot()]; }

 private:
  template <typename Value, typename ValueLess>
  struct Ranked {
    Value key;
    Time last_served;
    std::uint64_t serial;
    friend bool operator<(const Ranked& a, const Ranked& b) {
      if (a.key != b.key) return ValueLess()(a.key, b.key);
      if (a.last_served != b.last_served) return a.last_served < b.last_served;
      return a.serial < b.serial;
    }
  };

  FluidTime par_ = 0;
  std::vector<Entry> entries_;  // by slot
  IndexedHeap<Ranked<FluidTime, std::less<FluidTime>>> later_;
  IndexedHeap<Ranked<Key, Less>> eligible_;
};

}  // namespace gpusched
