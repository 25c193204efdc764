// Analytics in whole numbers, so that the results are the same in any order: k-means and histograms.
//
// The sizes are those of points.h.
#include "gpusched/kernel.h"

#define FEATURES 4
#define CLUSTERS 16
#define SUMS (CLUSTERS * (FEATURES + 1))
#define BINS 64
#define BLOCK 64
#define POINTS_PER_THREAD 16

// Adds each point to its nearest centroid's sums: FEATURES of them and a count for each cluster.
// One block takes BLOCK x POINTS_PER_THREAD points, from block `first` on.
GS_KERNEL GS_BLOCK(BLOCK, 1, 1) void assign_points(GS_GLOBAL const int* GS_RESTRICT points,
                                                   GS_GLOBAL const int* GS_RESTRICT centroids,
                                                   uint first, GS_GLOBAL int* GS_RESTRICT sums) {
  GS_LOCAL int part[SUMS];
  const uint thread = (uint)GS_LOCAL_ID(0);
  for (uint i = thread; i < SUMS; i += BLOCK) part[i] = 0;
  GS_BARRIER();
  const size_t start = (first + GS_GROUP_ID(0)) * (BLOCK * POINTS_PER_THREAD);
  for (uint i = 0; i < POINTS_PER_THREAD; ++i) {
    GS_GLOBAL const int* point = points + (start + i * BLOCK + thread) * FEATURES;
    int best = 0x7fffffff;
    int nearest = 0;
    for (int cluster = 0; cluster < CLUSTERS; ++cluster) {
      int squared = 0;
      for (int f = 0; f < FEATURES; ++f) {
        const int d = point[f] - centroids[cluster * FEATURES + f];
        squared += d * d;
      }
      if (squared < best) {
        best = squared;
        nearest = cluster;
      }
    }
    for (int f = 0; f < FEATURES; ++f) GS_ATOMIC_ADD(&part[nearest * (FEATURES + 1) + f], point[f]);
    GS_ATOMIC_ADD(&part[nearest * (FEATURES + 1) + FEATURES], 1);
  }
  GS_BARRIER();
  for (uint i = thread; i < SUMS; i += BLOCK) {
    if (part[i] != 0) GS_ATOMIC_ADD(&sums[i], part[i]);
  }
}

// Each centroid becomes the mean of its points; one without any stays. One thread a coordinate.
GS_KERNEL GS_BLOCK(CLUSTERS* FEATURES, 1,
                   1) void move_centroids(GS_GLOBAL int* GS_RESTRICT centroids,
                                          GS_GLOBAL const int* GS_RESTRICT sums) {
  const uint i = (uint)GS_LOCAL_ID(0), cluster = i / FEATURES;
  const int count = sums[cluster * (FEATURES + 1) + FEATURES];
  if (count > 0) centroids[i] = sums[cluster * (FEATURES + 1) + i % FEATURES] / count;
}

// How many points have each feature in each of BINS equal ranges below 1,024.
GS_KERNEL GS_BLOCK(BLOCK, 1, 1) void histograms(GS_GLOBAL const int* GS_RESTRICT points, uint first,
                                                GS_GLOBAL int* GS_RESTRICT bins) {
  GS_LOCAL int part[FEATURES * BINS];
  const uint thread = (uint)GS_LOCAL_ID(0);
  for (uint i = thread; i < FEATURES * BINS; i += BLOCK) part[i] = 0;
  GS_BARRIER();
  const size_t start = (first + GS_GROUP_ID(0)) * (BLOCK * POINTS_PER_THREAD);
  for (uint i = 0; i < POINTS_PER_THREAD; ++i) {
    GS_GLOBAL const int* point = points + (start + i * BLOCK + thread) * FEATURES;
    for (int f = 0; f < FEATURES; ++f) GS_ATOMIC_ADD(&part[f * BINS + point[f] * BINS / 1024], 1);
  }
  GS_BARRIER();
  for (uint i = thread; i < FEATURES * BINS; i += BLOCK) {
    if (part[i] != 0) GS_ATOMIC_ADD(&bins[i], part[i]);
  }
}
