// A contiguous range of a grid's blocks as at most five boxes, which is what a launch can be given.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "device/device.h"

namespace gpusched::device::ptx {

struct Box {
  Dim3 offset{0, 0, 0};  // of its first block in the grid
  Dim3 extent;           // the grid to launch
};

// What a rewritten entry takes as its last parameter: 32 bytes at an alignment of 16.
struct BoxParameter {
  std::uint32_t offset[3];  // added to %ctaid
  std::uint32_t grid[3];    // the whole grid: %nctaid as the kernel sees it
  std::uint32_t unused[2];
};
static_assert(sizeof(BoxParameter) == 32);

inline BoxParameter ToParameter(const Box& box, Dim3 grid) {
  return {.offset = {box.offset.x, box.offset.y, box.offset.z},
          .grid = {grid.x, grid.y, grid.z},
          .unused = {}};
}

class BoxList {
 public:
  // Row tail, rows to the end of the plane, planes, rows, row head.
  static constexpr std::size_t kMost = 5;
  void Add(const Box& box) { boxes_[size_++] = box; }
  std::span<const Box> boxes() const { return {boxes_.data(), size_}; }

 private:
  std::array<Box, kMost> boxes_;
  std::size_t size_ = 0;
};

// The blocks [first, first + count) of the grid, x fastest, in increasing order. The range lies in
// the grid, whose volume is not zero.
BoxList CutIntoBoxes(Dim3 grid, std::uint64_t first, std::uint64_t count);

}  // namespace gpusched::device::ptx
