// Takes the largest box that begins at the range's first block, again and again.
#include "device/cuda/ptx/boxes.h"

#include <algorithm>

namespace gpusched::device::ptx {

BoxList CutIntoBoxes(Dim3 grid, std::uint64_t first, std::uint64_t count) {
  const std::uint64_t row = grid.x, plane = row * grid.y;
  BoxList list;
  while (count > 0) {
    Box box;
    box.offset = {static_cast<std::uint32_t>(first % row),
                  static_cast<std::uint32_t>(first / row % grid.y),
                  static_cast<std::uint32_t>(first / plane)};
    if (box.offset.x != 0 || count < row) {
      box.extent.x = static_cast<std::uint32_t>(std::min(count, row - box.offset.x));
    } else if (box.offset.y != 0 || count < plane) {
      box.extent = {
          grid.x,
          static_cast<std::uint32_t>(std::min<std::uint64_t>(count / row, grid.y - box.offset.y)),
          1};
    } else {
      box.extent = {grid.x, grid.y, static_cast<std::uint32_t>(count / plane)};
    }
    list.Add(box);
    const std::uint64_t taken = Volume(box.extent);
    first += taken;
    count -= taken;
  }
  return list;
}

}  // namespace gpusched::device::ptx
