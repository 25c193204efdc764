// The scene in plain C++: where the lights are, and what a pixel looks like.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace game {

// The sizes that shading.cl is written for.
inline constexpr std::uint32_t kTile = 16, kLightFloats = 8, kMostLightsPerTile = 64;
inline constexpr std::uint32_t kTilesAcross = 40, kLights = 96;
inline constexpr std::size_t kTilePixels = kTile * kTile;

// Each light: x, y, height, reach, then red, green, blue and nothing; in pixels.
using Lights = std::array<float, kLights * kLightFloats>;

// The lights circle over a frame of so many rows of tiles; `frame` counts sixtieths of a second.
Lights LightsAt(std::size_t frame, std::size_t tile_rows);

// A tile's pixels as red, green, blue and 255, from the low byte on.
using TilePixels = std::array<std::uint32_t, kTilePixels>;
TilePixels ShadeTile(const Lights& lights, std::size_t tile);

// Whether no channel differs by more than rounding can make it.
bool LookTheSame(const TilePixels& a, const TilePixels& b);

}  // namespace game
