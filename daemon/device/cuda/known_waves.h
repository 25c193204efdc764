// How many blocks of a kernel run side by side, for the blocks that were asked about last.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpusched::device {

// What decides it beside the kernel.
struct BlockNeeds {
  std::uint64_t threads = 0;
  std::uint64_t dynamic_bytes = 0;  // of shared memory
  bool operator==(const BlockNeeds&) const = default;
};

class KnownWaves {
 public:
  std::optional<std::uint64_t> Find(const BlockNeeds& needs) const {
    for (const Known& each : known_) {
      if (each.blocks != 0 && each.needs == needs) return each.blocks;
    }
    return std::nullopt;
  }
  void Keep(const BlockNeeds& needs, std::uint64_t blocks) {
    known_[next_] = {needs, blocks};
    next_ = (next_ + 1) % known_.size();
  }

 private:
  struct Known {
    BlockNeeds needs;
    std::uint64_t blocks = 0;  // 0: nothing yet
  };
  // A program launches a kernel with one kind of block, seldom with more than two.
  std::array<Known, 4> known_{};
  std::size_t next_ = 0;
};

}  // namespace gpusched::device
