// A frame, tile by tile: which lights reach each tile, then every pixel lit by those.
//
// A pixel lies on a floor with waves; the frame is kept tile by tile, so that a tile is one piece of
// memory. The sizes are those of scene.h.
#include "gpusched/kernel.h"

#define TILE 16
#define LIGHT_FLOATS 8
#define MOST_LIGHTS 64

// Lists the lights whose circle touches the tile. One thread a tile.
GS_KERNEL GS_BLOCK(64, 1, 1) void light_tiles(GS_GLOBAL const float* GS_RESTRICT lights,
                                              uint light_count, uint tiles_across, uint tiles,
                                              GS_GLOBAL uint* GS_RESTRICT counts,
                                              GS_GLOBAL uint* GS_RESTRICT lists) {
  const uint tile = (uint)GS_GLOBAL_ID(0);
  if (tile >= tiles) return;
  const float left = (float)(tile % tiles_across * TILE), top = (float)(tile / tiles_across * TILE);
  uint count = 0;
  for (uint i = 0; i < light_count && count < MOST_LIGHTS; ++i) {
    GS_GLOBAL const float* light = lights + i * LIGHT_FLOATS;
    // From the light to the nearest point of the tile.
    const float dx = light[0] - fmin(fmax(light[0], left), left + (float)(TILE - 1));
    const float dy = light[1] - fmin(fmax(light[1], top), top + (float)(TILE - 1));
    if (dx * dx + dy * dy < light[3] * light[3]) lists[tile * MOST_LIGHTS + count++] = i;
  }
  counts[tile] = count;
}

GS_FUNCTION uint channel(float value) { return (uint)(fmin(value, 1.0f) * 255.0f + 0.5f); }

// One thread a pixel, a block a tile, from tile `first` on.
GS_KERNEL GS_BLOCK(TILE* TILE, 1, 1) void shade_tiles(GS_GLOBAL const float* GS_RESTRICT lights,
                                                      GS_GLOBAL const uint* GS_RESTRICT counts,
                                                      GS_GLOBAL const uint* GS_RESTRICT lists,
                                                      uint tiles_across, uint first,
                                                      GS_GLOBAL uint* GS_RESTRICT frame) {
  const uint tile = first + (uint)GS_GROUP_ID(0), pixel = (uint)GS_LOCAL_ID(0);
  const float x = (float)(tile % tiles_across * TILE + pixel % TILE);
  const float y = (float)(tile / tiles_across * TILE + pixel / TILE);
  // The floor's slope: triangle waves, so that both languages agree to the last digits.
  const float slope_x = fabs(x * 0.0625f - floor(x * 0.0625f) - 0.5f) - 0.25f;
  const float slope_y = fabs(y * 0.03125f - floor(y * 0.03125f) - 0.5f) - 0.25f;
  const float length = 1.0f / sqrt(slope_x * slope_x + slope_y * slope_y + 1.0f);
  float red = 0.02f, green = 0.02f, blue = 0.03f;
  const uint count = counts[tile];
  for (uint i = 0; i < count; ++i) {
    GS_GLOBAL const float* light = lights + lists[tile * MOST_LIGHTS + i] * LIGHT_FLOATS;
    const float dx = light[0] - x, dy = light[1] - y, height = light[2];
    const float squared = dx * dx + dy * dy + height * height;
    const float distance_to = sqrt(squared);
    const float facing = fmax(0.0f, (height - slope_x * dx - slope_y * dy) * length / distance_to);
    const float near = fmax(0.0f, 1.0f - distance_to / light[3]);
    const float shine = facing * facing * facing * facing;
    const float brightness = near * near * (facing + 0.5f * shine * shine);
    red += light[4] * brightness;
    green += light[5] * brightness;
    blue += light[6] * brightness;
  }
  frame[(size_t)tile * (TILE * TILE) + pixel] =
      channel(red) | channel(green) << 8 | channel(blue) << 16 | 0xff000000u;
}
