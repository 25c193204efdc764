// The job of a frame: lights in, lists of lights, tiles in pieces, one tile out.
#include "frames.h"

#include <algorithm>
#include <vector>

#include "kernels/shading.h"

namespace game {

using gpusched::Dim3;
using gpusched::Duration;
using gpusched::Job;
using gpusched::Result;

namespace {

// 640 x 4,096 pixels are beyond what a game would show.
constexpr std::size_t kMostTileRows = 256;
constexpr std::size_t kMostTiles = kMostTileRows * kTilesAcross;
constexpr std::uint32_t kListBlock = 64;
// A tile's neighbours are not looked at in the following frame.
constexpr std::size_t kTileStep = 997;

}  // namespace

Result<std::unique_ptr<Frames>> Frames::Open(gpusched::Session& session,
                                             const samples::Size& size) {
  auto module = session.LoadModule({.source = kernels::kShading, .cuda_source = kernels::kShading});
  if (!module.ok()) return module.status();
  std::vector<gpusched::Buffer> made;
  for (const std::size_t bytes :
       {sizeof(Lights), kMostTiles * sizeof(std::uint32_t),
        kMostTiles * kMostLightsPerTile * sizeof(std::uint32_t), kMostTiles * sizeof(TilePixels)}) {
    auto buffer = session.Allocate(bytes);
    if (!buffer.ok()) return buffer.status();
    made.push_back(*std::move(buffer));
  }
  std::unique_ptr<Frames> frames(
      new Frames(session, *std::move(module),
                 {std::move(made[0]), std::move(made[1]), std::move(made[2]), std::move(made[3])},
                 size.launches()));
  Frame frame;
  const auto rows =
      samples::FindAmount(size, 1, kMostTileRows, [&](std::size_t amount) -> Result<Duration> {
        frames->tile_rows_ = amount;
        return samples::TimeAlone([&] { return frames->Submit(frame); });
      });
  if (!rows.ok()) return rows.status();
  frames->tile_rows_ = *rows;
  return frames;
}

Result<gpusched::Submission> Frames::Submit(Frame& frame, const gpusched::SubmitOptions& options) {
  const std::size_t tiles = tile_rows_ * kTilesAcross;
  const Lights lights = LightsAt(frame.number, tile_rows_);
  frame.tile = frame.number * kTileStep % tiles;
  const auto u32 = [](std::size_t value) { return static_cast<std::uint32_t>(value); };
  Job job;
  job.Write(memory_.lights, lights);
  job.Launch(module_.kernel("light_tiles"), Dim3{u32((tiles + kListBlock - 1) / kListBlock)},
             Dim3{kListBlock}, memory_.lights, kLights, kTilesAcross, u32(tiles), memory_.counts,
             memory_.lists);
  for (std::size_t piece = 0; piece < launches_; ++piece) {
    const std::size_t from = tiles * piece / launches_, to = tiles * (piece + 1) / launches_;
    if (from == to) continue;
    job.Launch(module_.kernel("shade_tiles"), Dim3{u32(to - from)}, Dim3{kTilePixels},
               memory_.lights, memory_.counts, memory_.lists, kTilesAcross, u32(from),
               memory_.frame);
  }
  job.Read(memory_.frame, frame.pixels, frame.tile * sizeof(TilePixels));
  return session_.Submit(job, options);
}

bool Frames::IsRight(const Frame& frame) const {
  return LookTheSame(frame.pixels, ShadeTile(LightsAt(frame.number, tile_rows_), frame.tile));
}

}  // namespace game
