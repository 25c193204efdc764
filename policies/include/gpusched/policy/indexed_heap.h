// A binary heap over slots: the least key on top, and any slot's key found, moved or removed in
// O(log n).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace gpusched {

// Holds at most one key per slot. Only Reserve allocates, so the core and the policies reserve when
// a session is added and never pay in a decision. Entries are moved whole: keys are a few words,
// and a comparison then needs no second look-up. Equal keys come out in any order; put a serial
// into the key where that matters.
template <typename Key, typename Less = std::less<Key>>
class IndexedHeap {
 public:
  explicit IndexedHeap(Less less = Less()) : less_(std::move(less)) {}

  // Makes room for `slot` and every lower one.
  void Reserve(std::uint32_t slot) {
    if (slot < position_.size()) return;
    const std::size_t room = std::size_t{slot} + 1;
    if (room > position_.capacity()) {
      position_.reserve(room * 2);
      heap_.reserve(room * 2);
    }
    position_.resize(room, kNowhere);
  }

  bool Contains(std::uint32_t slot) const {
    return slot < position_.size() && position_[slot] != kNowhere;
  }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }

  // The heap is not empty.
  std::uint32_t top_slot() const { return heap_.front().slot; }
  const Key& top() const { return heap_.front().key; }
  // What would be on top without the top; the heap holds at least two.
  std::uint32_t second_slot() const {
    return heap_[LeastOf(1, std::min(heap_.size(), 1 + kArity))].slot;
  }
  // Contains(slot).
  const Key& KeyOf(std::uint32_t slot) const { return heap_[position_[slot]].key; }

  // Inserts the slot or moves it to a new key.
  void Set(std::uint32_t slot, const Key& key) {
    Reserve(slot);
    const Entry entry{key, slot};
    const std::size_t hole = position_[slot];
    if (hole == kNowhere) {
      heap_.push_back(entry);
      SiftUp(heap_.size() - 1, entry);
    } else if (less_(key, heap_[hole].key)) {
      SiftUp(hole, entry);
    } else {
      SiftDown(hole, entry);
    }
  }

  // Removes the slot if it is there.
  void Remove(std::uint32_t slot) {
    if (!Contains(slot)) return;
    const std::size_t hole = position_[slot];
    position_[slot] = kNowhere;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (hole == heap_.size()) return;
    if (hole > 0 && less_(last.key, heap_[(hole - 1) / kArity].key)) {
      SiftUp(hole, last);
    } else {
      SiftDown(hole, last);
    }
  }

  // Forgets every key and keeps the room.
  void Clear() {
    for (const Entry& entry : heap_) position_[entry.slot] = kNowhere;
    heap_.clear();
  }

 private:
  struct Entry {
    [[no_unique_address]] Key key;  // the slot may lie in its padding
    std::uint32_t slot;
  };
  // Half as deep as a binary heap: with thousands of sessions a level costs a cache miss, and the
  // children of one place lie side by side.
  static constexpr std::size_t kArity = 4;
  static constexpr std::uint32_t kNowhere = UINT32_MAX;

  // The place of the least key in [first, last), which is not empty.
  std::size_t LeastOf(std::size_t first, std::size_t last) const {
    if (last - first == kArity) {
      // In pairs, by sums in place of branches: which child is the least cannot be foreseen.
      const auto lesser = [this](std::size_t a, std::size_t b) {
        return a + (b - a) * static_cast<std::size_t>(less_(heap_[b].key, heap_[a].key));
      };
      return lesser(lesser(first, first + 1), lesser(first + 2, first + 3));
    }
    std::size_t least = first;
    for (std::size_t i = first + 1; i < last; ++i) {
      if (less_(heap_[i].key, heap_[least].key)) least = i;
    }
    return least;
  }

  void Place(std::size_t at, const Entry& entry) {
    heap_[at] = entry;
    position_[entry.slot] = static_cast<std::uint32_t>(at);
  }

  // Moves the hole to where `entry` belongs and puts it there.
  void SiftUp(std::size_t hole, const Entry& entry) {
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / kArity;
      if (!less_(entry.key, heap_[parent].key)) break;
      Place(hole, heap_[parent]);
      hole = parent;
    }
    Place(hole, entry);
  }

  void SiftDown(std::size_t hole, const Entry& entry) {
    const std::size_t size = heap_.size();
    for (std::size_t first = kArity * hole + 1; first < size; first = kArity * hole + 1) {
      const std::size_t child = LeastOf(first, std::min(size, first + kArity));
      if (!less_(heap_[child].key, entry.key)) break;
      Place(hole, heap_[child]);
      hole = child;
    }
    Place(hole, entry);
  }

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> position_;  // by slot; kNowhere: not in the heap
  [[no_unique_address]] Less less_;
};

}  // namespace gpusched
