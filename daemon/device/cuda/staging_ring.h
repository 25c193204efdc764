// Pinned memory that copies pass through, handed out in turn and given back in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "device/cuda/handle.h"

namespace gpusched::device {

class StagingRing {
 public:
  // None: every Take finds nothing.
  StagingRing(PinnedHandle memory, std::size_t bytes)
      : memory_(std::move(memory)), bytes_(memory_ == nullptr ? 0 : bytes) {}

  // Null where so much is not free in one piece.
  std::byte* Take(std::size_t bytes) {
    const std::size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (size == 0 || size > bytes_) return nullptr;
    std::size_t at = 0;
    if (!pieces_.empty()) {
      const std::size_t first = pieces_.front().begin;
      at = pieces_.back().begin + pieces_.back().size;
      const bool wrapped = pieces_.back().begin < first;
      if (wrapped && first - at < size) return nullptr;
      if (!wrapped && bytes_ - at < size) {
        if (first < size) return nullptr;
        at = 0;
      }
    }
    pieces_.push_back({.begin = at, .size = size, .free = false});
    return memory_.get() + at;
  }

  void Give(const std::byte* piece) {
    for (Piece& each : pieces_) {
      if (memory_.get() + each.begin == piece) each.free = true;
    }
    while (!pieces_.empty() && pieces_.front().free) pieces_.pop_front();
  }

 private:
  static constexpr std::size_t kAlignment = 256;  // as the copy engines like it
  struct Piece {
    std::size_t begin = 0, size = 0;
    bool free = false;
  };

  PinnedHandle memory_;
  std::size_t bytes_;
  std::deque<Piece> pieces_;  // in the order of their taking
};

}  // namespace gpusched::device
