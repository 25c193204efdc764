// One pixel at a time, as shading.cl does it.
#include "scene.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace game {
namespace {

// A root may differ in its last place, and then a channel by one step; two leave room for sums.
constexpr int kMostDifference = 2;

std::vector<std::uint32_t> LightsOf(const Lights& lights, std::size_t tile) {
  const float left = static_cast<float>(tile % kTilesAcross * kTile);
  const float top = static_cast<float>(tile / kTilesAcross * kTile);
  std::vector<std::uint32_t> list;
  for (std::uint32_t i = 0; i < kLights && list.size() < kMostLightsPerTile; ++i) {
    const float* light = lights.data() + i * kLightFloats;
    const float dx = light[0] - std::clamp(light[0], left, left + (kTile - 1));
    const float dy = light[1] - std::clamp(light[1], top, top + (kTile - 1));
    if (dx * dx + dy * dy < light[3] * light[3]) list.push_back(i);
  }
  return list;
}

float Slope(float waves) { return std::abs(waves - std::floor(waves) - 0.5f) - 0.25f; }

std::uint32_t Channel(float value) {
  return static_cast<std::uint32_t>(std::min(value, 1.0f) * 255.0f + 0.5f);
}

std::uint32_t ShadePixel(const Lights& lights, const std::vector<std::uint32_t>& list, float x,
                         float y) {
  const float slope_x = Slope(x * 0.0625f), slope_y = Slope(y * 0.03125f);
  const float length = 1.0f / std::sqrt(slope_x * slope_x + slope_y * slope_y + 1.0f);
  float red = 0.02f, green = 0.02f, blue = 0.03f;
  for (const std::uint32_t i : list) {
    const float* light = lights.data() + i * kLightFloats;
    const float dx = light[0] - x, dy = light[1] - y, height = light[2];
    const float distance = std::sqrt(dx * dx + dy * dy + height * height);
    const float facing = std::max(0.0f, (height - slope_x * dx - slope_y * dy) * length / distance);
    const float near = std::max(0.0f, 1.0f - distance / light[3]);
    const float shine = facing * facing * facing * facing;
    const float brightness = near * near * (facing + 0.5f * shine * shine);
    red += light[4] * brightness;
    green += light[5] * brightness;
    blue += light[6] * brightness;
  }
  return Channel(red) | Channel(green) << 8 | Channel(blue) << 16 | 0xff000000u;
}

}  // namespace

Lights LightsAt(std::size_t frame, std::size_t tile_rows) {
  Lights lights{};
  const double width = kTilesAcross * kTile, height = static_cast<double>(tile_rows * kTile);
  for (std::uint32_t i = 0; i < kLights; ++i) {
    float* light = lights.data() + i * kLightFloats;
    // A golden ratio apart, each on a circle of its own.
    const double place = std::fmod(0.618034 * (i + 1), 1.0);
    const double angle = static_cast<double>(frame) / 60.0 * (0.5 + place) + i;
    light[0] = static_cast<float>(width * place + 40 * std::cos(angle));
    light[1] = static_cast<float>(height * (i + 0.5) / kLights + 40 * std::sin(angle));
    light[2] = 12.0f + static_cast<float>(i % 5) * 4.0f;
    light[3] = 120.0f;
    light[4] = i % 3 == 0 ? 0.9f : 0.3f;
    light[5] = i % 3 == 1 ? 0.9f : 0.3f;
    light[6] = i % 3 == 2 ? 0.9f : 0.3f;
  }
  return lights;
}

TilePixels ShadeTile(const Lights& lights, std::size_t tile) {
  const std::vector<std::uint32_t> list = LightsOf(lights, tile);
  TilePixels pixels{};
  for (std::size_t i = 0; i < kTilePixels; ++i) {
    pixels[i] =
        ShadePixel(lights, list, static_cast<float>(tile % kTilesAcross * kTile + i % kTile),
                   static_cast<float>(tile / kTilesAcross * kTile + i / kTile));
  }
  return pixels;
}

bool LookTheSame(const TilePixels& a, const TilePixels& b) {
  for (std::size_t i = 0; i < kTilePixels; ++i) {
    for (int shift = 0; shift < 32; shift += 8) {
      const int difference =
          static_cast<int>(a[i] >> shift & 0xff) - static_cast<int>(b[i] >> shift & 0xff);
      if (std::abs(difference) > kMostDifference) return false;
    }
  }
  return true;
}

}  // namespace game
