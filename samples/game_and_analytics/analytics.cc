// The job of an analysis: rounds of assigning and moving, then the histograms, all in pieces.
#include "analytics.h"

#include <algorithm>
#include <string>

#include "kernels/clusters.h"

namespace game {

using gpusched::Dim3;
using gpusched::Duration;
using gpusched::Job;
using gpusched::Result;
using gpusched::Status;

namespace {

constexpr std::uint32_t kBlock = 64;
// What a block takes: POINTS_PER_THREAD times its threads.
constexpr std::size_t kPointsPerBlock = 1'024;
constexpr std::size_t kUnit = kPointsPerBlock;
// Their sums stay below 2^31.
constexpr std::size_t kMostPoints = 1'024 * kUnit;
constexpr int kRounds = 8;
constexpr std::uint32_t kPointSeed = 7;

}  // namespace

Result<std::unique_ptr<Analytics>> Analytics::Open(gpusched::Session& session,
                                                   const samples::Size& size) {
  auto module =
      session.LoadModule({.source = kernels::kClusters, .cuda_source = kernels::kClusters});
  if (!module.ok()) return module.status();
  const Findings shape;
  std::vector<gpusched::Buffer> made;
  for (const std::size_t bytes : {kMostPoints * kFeatures * sizeof(std::int32_t),
                                  sizeof shape.centroids, sizeof shape.sums, sizeof shape.bins}) {
    auto buffer = session.Allocate(bytes);
    if (!buffer.ok()) return buffer.status();
    made.push_back(*std::move(buffer));
  }
  // The histograms take about as long as a round.
  const samples::Size round{.alone = size.alone / (kRounds + 1), .launch = size.launch};
  std::unique_ptr<Analytics> analytics(new Analytics(
      session, *std::move(module),
      {std::move(made[0]), std::move(made[1]), std::move(made[2]), std::move(made[3])},
      round.launches()));
  analytics->points_ = RandomPoints(kMostPoints, kPointSeed);
  if (Status status =
          samples::RunOnce(session, Job().Write(analytics->memory_.points, analytics->points_));
      !status.ok()) {
    return status;
  }
  Analysis analysis;
  const auto points =
      samples::FindAmount(size, kUnit, kMostPoints, [&](std::size_t amount) -> Result<Duration> {
        analytics->point_count_ = amount;
        return samples::TimeAlone([&] { return analytics->Submit(analysis); });
      });
  if (!points.ok()) return points.status();
  analytics->point_count_ = *points;
  return analytics;
}

Job Analytics::Build(const Centroids& start, Findings& to) const {
  const std::size_t blocks = point_count_ / kPointsPerBlock;
  const auto in_pieces = [&](const auto& add) {
    for (std::size_t i = 0; i < launches_per_round_; ++i) {
      const std::size_t from = blocks * i / launches_per_round_;
      const std::size_t end = blocks * (i + 1) / launches_per_round_;
      if (from < end) {
        add(static_cast<std::uint32_t>(from), Dim3{static_cast<std::uint32_t>(end - from)});
      }
    }
  };
  const Memory& m = memory_;
  Job job;
  job.Write(m.centroids, start);
  for (int round = 0; round < kRounds; ++round) {
    job.Fill(m.sums, 0, sizeof to.sums);
    in_pieces([&](std::uint32_t first, Dim3 grid) {
      job.Launch(module_.kernel("assign_points"), grid, Dim3{kBlock}, m.points, m.centroids, first,
                 m.sums);
    });
    job.Launch(module_.kernel("move_centroids"), Dim3{1}, Dim3{kClusters * kFeatures}, m.centroids,
               m.sums);
  }
  job.Fill(m.bins, 0, sizeof to.bins);
  in_pieces([&](std::uint32_t first, Dim3 grid) {
    job.Launch(module_.kernel("histograms"), grid, Dim3{kBlock}, m.points, first, m.bins);
  });
  job.Read(m.centroids, to.centroids).Read(m.sums, to.sums).Read(m.bins, to.bins);
  return job;
}

Result<gpusched::Submission> Analytics::Submit(Analysis& analysis,
                                               const gpusched::SubmitOptions& options) {
  return session_.Submit(Build(RandomCentroids(analysis.seed), analysis.findings), options);
}

bool Analytics::IsRight(const Analysis& analysis) const {
  return analysis.findings ==
         Analyse(points_, point_count_, RandomCentroids(analysis.seed), kRounds);
}

}  // namespace game
