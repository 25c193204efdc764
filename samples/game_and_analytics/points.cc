// All in whole numbers, so that a sum is the same in any order.
#include "points.h"

#include <algorithm>
#include <random>

namespace game {
namespace {

std::size_t Nearest(const std::int32_t* point, const Centroids& centroids) {
  std::size_t nearest = 0;
  std::int32_t best = INT32_MAX;
  for (std::size_t cluster = 0; cluster < kClusters; ++cluster) {
    std::int32_t squared = 0;
    for (std::size_t f = 0; f < kFeatures; ++f) {
      const std::int32_t d = point[f] - centroids[cluster * kFeatures + f];
      squared += d * d;
    }
    if (squared < best) {
      best = squared;
      nearest = cluster;
    }
  }
  return nearest;
}

void Round(const std::vector<std::int32_t>& points, std::size_t count, Findings& findings) {
  findings.sums.fill(0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t* point = points.data() + i * kFeatures;
    std::int32_t* sums =
        findings.sums.data() + Nearest(point, findings.centroids) * (kFeatures + 1);
    for (std::size_t f = 0; f < kFeatures; ++f) sums[f] += point[f];
    ++sums[kFeatures];
  }
  for (std::size_t i = 0; i < findings.centroids.size(); ++i) {
    const std::int32_t* sums = findings.sums.data() + i / kFeatures * (kFeatures + 1);
    if (sums[kFeatures] > 0) findings.centroids[i] = sums[i % kFeatures] / sums[kFeatures];
  }
}

}  // namespace

std::vector<std::int32_t> RandomPoints(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&random](std::uint32_t bound) {
    return static_cast<std::int32_t>(random() % bound);
  };
  std::array<std::int32_t, kClusters * kFeatures> centres{};
  for (std::int32_t& coordinate : centres) coordinate = 128 + below(kFeatureRange - 256);
  std::vector<std::int32_t> points;
  points.reserve(count * kFeatures);
  for (std::size_t i = 0; i < count; ++i) {
    const auto centre = static_cast<std::size_t>(below(kClusters)) * kFeatures;
    for (std::size_t f = 0; f < kFeatures; ++f) {
      const std::int32_t off = below(128) + below(128) - 127;
      points.push_back(std::clamp(centres[centre + f] + off, 0, kFeatureRange - 1));
    }
  }
  return points;
}

Centroids RandomCentroids(std::uint32_t seed) {
  std::mt19937 random(seed);
  Centroids centroids{};
  for (std::int32_t& coordinate : centroids) {
    coordinate = static_cast<std::int32_t>(random() % kFeatureRange);
  }
  return centroids;
}

Findings Analyse(const std::vector<std::int32_t>& points, std::size_t count, Centroids start,
                 int rounds) {
  Findings findings;
  findings.centroids = start;
  for (int round = 0; round < rounds; ++round) Round(points, count, findings);
  for (std::size_t i = 0; i < count * kFeatures; ++i) {
    const auto bin = static_cast<std::size_t>(points[i]) * kBins / kFeatureRange;
    ++findings.bins[i % kFeatures * kBins + bin];
  }
  return findings;
}

}  // namespace game
