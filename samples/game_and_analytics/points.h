// The analysis in plain C++: points in whole numbers, k-means and histograms over them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace game {

// The sizes that clusters.cl is written for.
inline constexpr std::size_t kFeatures = 4, kClusters = 16, kBins = 64;
inline constexpr std::int32_t kFeatureRange = 1'024;  // features are 0..1,023
inline constexpr std::size_t kSums = kClusters * (kFeatures + 1);

using Centroids = std::array<std::int32_t, kClusters * kFeatures>;

struct Findings {
  Centroids centroids{};
  std::array<std::int32_t, kSums> sums{};              // of the last round
  std::array<std::int32_t, kFeatures * kBins> bins{};  // a histogram for each feature

  friend bool operator==(const Findings&, const Findings&) = default;
};

// Rows of kFeatures, around as many centres as there are clusters.
std::vector<std::int32_t> RandomPoints(std::size_t count, std::uint32_t seed);
Centroids RandomCentroids(std::uint32_t seed);

// `rounds` of k-means over the first `count` points.
Findings Analyse(const std::vector<std::int32_t>& points, std::size_t count, Centroids start,
                 int rounds);

}  // namespace game
