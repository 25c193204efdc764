// Which commands keep order on a device with a line of its own for each class of priority.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpusched::core {

// More than the priorities there are: each is a class of its own.
constexpr std::uint32_t kEachPriorityItsOwn = 257;

// Of classes 0 (lowest) to `classes` - 1, the middle one for priority 0, the lower of two middle
// ones; those beyond the outermost share them. One class: everything keeps order.
constexpr std::uint32_t ClassOf(std::int32_t priority, std::uint32_t classes) {
  const std::int64_t highest = std::int64_t{classes} - 1;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(priority + highest / 2, 0, highest));
}

}  // namespace gpusched::core
