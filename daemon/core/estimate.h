// What commands are expected to take, learned from what they took.
//
// One estimate a key: time per block or byte and its spread, both moving averages. A measurement
// that is off by more than a factor of two replaces the average at once, and so does the second in
// a row that is off by more than noise, so that after any change of a kernel's time no more than
// two commands are sized wrong; smaller ones are averaged in, so that noise is not chased.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gpusched/policy/types.h"

namespace gpusched::core {

class Estimates {
 public:
  // `overhead`: what starting any command may cost at most.
  Estimates(std::uint32_t limit, Duration overhead) : limit_(limit), overhead_(overhead) {}

  // The index for a key; keys beyond the limit share the last one.
  std::uint32_t IndexOf(std::uint64_t key);

  bool Known(std::uint32_t index) const { return entries_[index].samples > 0; }
  // Expected time, and expected time plus one spread. Zero where nothing is known.
  Duration Expect(std::uint32_t index, std::uint64_t units) const;
  Duration ExpectAtMost(std::uint32_t index, std::uint64_t units) const;
  // The same, not believing a single long command: by the lesser of the latest two averages. For
  // judging whether a job can be on time, where one accident must not condemn those to come.
  Duration ExpectCalmly(std::uint32_t index, std::uint64_t units) const;
  // How many units fit into `room`, spread included; at least 1.
  std::uint64_t UnitsWithin(std::uint32_t index, Duration room) const;

  void Measured(std::uint32_t index, std::uint64_t units, Duration took);

 private:
  // Per unit, in nanoseconds x 2^kBits: a copied byte takes well under a nanosecond.
  static constexpr int kBits = 20;
  struct Entry {
    std::int64_t per_unit = 0;
    std::int64_t spread = 0;
    std::int64_t before = 0;  // per unit, before the latest measurement
    std::uint64_t usual = 0;  // units of a command, averaged
    std::uint64_t samples = 0;
    int off = 0;  // the latest measurement was beyond noise: above 1, below -1
  };
  static Duration Scale(std::int64_t per_unit, std::uint64_t units);

  const std::uint32_t limit_;
  const Duration overhead_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;  // looked up, never iterated
  std::vector<Entry> entries_;
};

}  // namespace gpusched::core
