// How a range of a launch's blocks runs as a launch of its own with the results of the whole.
//
// A range of n blocks is enqueued as a row of n work-groups. Its three 64-bit global offsets are
// used purely as a channel: they carry the first block, the grid, the launch's own offset and its
// number of dimensions. A prelude in front of the source renames the built-in functions that would
// tell the row from the whole, and computes their answers from the channel: the block's linear
// number divided by the grid gives its ids. The whole launch is the range of all blocks, so there
// is one build and one variant of each kernel, and a chunk runs the very code the whole would.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "device/device.h"

namespace gpusched::device {

// Offsets that the channel can carry are below it.
inline constexpr std::uint32_t kOffsetLimit = std::uint32_t{1} << 20;

// Work dimensions a launch uses; at least one.
std::uint32_t DimensionsOf(const LaunchCommand&);

// What the channel can carry: fewer blocks than 2^32 in all and 2^31 along each axis, offsets below
// kOffsetLimit. Nothing beyond.
std::optional<std::array<std::size_t, 3>> ChannelOf(const LaunchCommand&);

// Goes in front of the source; ends so that the source's first line is line 1.
std::string_view CutPrelude();

// The built-in functions it renames.
std::span<const std::string_view> RenamedFunctions();

}  // namespace gpusched::device
