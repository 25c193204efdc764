// Boxes cover exactly the range, in order, five at most.
#include "device/cuda/ptx/boxes.h"

#include <gtest/gtest.h>

namespace gpusched::device::ptx {
namespace {

// Block by block, x fastest, as a launch of the box would run them in order.
std::vector<std::uint64_t> BlocksOf(Dim3 grid, const BoxList& list) {
  std::vector<std::uint64_t> blocks;
  for (const Box& box : list.boxes()) {
    for (std::uint32_t z = 0; z < box.extent.z; ++z) {
      for (std::uint32_t y = 0; y < box.extent.y; ++y) {
        for (std::uint32_t x = 0; x < box.extent.x; ++x) {
          blocks.push_back((std::uint64_t{box.offset.z + z} * grid.y + box.offset.y + y) * grid.x +
                           box.offset.x + x);
        }
      }
    }
  }
  return blocks;
}

TEST(BoxesTest, EveryRangeOfASmallGridIsCoveredInOrder) {
  for (const Dim3 grid : {Dim3{4, 3, 5}, Dim3{1, 7, 2}, Dim3{60, 1, 1}, Dim3{3, 1, 4}}) {
    const std::uint64_t volume = Volume(grid);
    for (std::uint64_t first = 0; first < volume; ++first) {
      for (std::uint64_t count = 1; first + count <= volume; ++count) {
        const std::vector<std::uint64_t> blocks = BlocksOf(grid, CutIntoBoxes(grid, first, count));
        ASSERT_EQ(blocks.size(), count);
        for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(blocks[i], first + i);
      }
    }
  }
}

TEST(BoxesTest, TheWholeGridIsOneBox) {
  const BoxList list = CutIntoBoxes({4, 3, 5}, 0, 60);
  ASSERT_EQ(list.boxes().size(), 1u);
  EXPECT_EQ(Volume(list.boxes()[0].extent), 60u);
}

TEST(BoxesTest, TheWorstRangeTakesFive) {
  // From the middle of a row in the middle of a plane to the same two planes on.
  EXPECT_EQ(CutIntoBoxes({4, 3, 5}, 5, 37).boxes().size(), BoxList::kMost);
}

TEST(BoxesTest, LargeGridsDoNotOverflow) {
  const Dim3 grid{0x7fffffff, 65'535, 65'535};
  const std::uint64_t first = std::uint64_t{0x7fffffff} * 65'535 * 3 + 17;
  const BoxList list = CutIntoBoxes(grid, first, std::uint64_t{0x7fffffff} * 5);
  std::uint64_t total = 0;
  for (const Box& box : list.boxes()) total += Volume(box.extent);
  EXPECT_EQ(total, std::uint64_t{0x7fffffff} * 5);
}

}  // namespace
}  // namespace gpusched::device::ptx
