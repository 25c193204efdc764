// One number for a whole history of facts and orders: two runs are the same if and, but for chance,
// only if their numbers are.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/action.h"
#include "core/event.h"

namespace gpusched::sim {

class HistoryHash {
 public:
  void Add(Time, const core::Event&);
  void Add(Time, const core::Action&);
  std::uint64_t value() const { return state_; }

  void Mix(std::uint64_t x) {
    __extension__ using Product = unsigned __int128;
    // A 64-bit prime near 2^64 / phi; folding the halves lets every bit reach every other.
    const Product product = Product{state_ ^ x} * 0x9e3779b97f4a7c55u;
    state_ = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    state_ = (state_ << 23 | state_ >> 41) + x;
  }
  void Mix(std::string_view text) {
    Mix(text.size());
    for (const char c : text) Mix(static_cast<unsigned char>(c));
  }

 private:
  std::uint64_t state_ = 0x6a09e667f3bcc908u;  // anything but zero
};

}  // namespace gpusched::sim
