// The recommendation model: embedding gather, two dense layers, top-k, and a gradient step on the layers.
//
// A candidate's features are its embedding times the user's, element by element; the first layer has
// HIDDEN rectified units, the second gives the score. The sizes are those of model.h.
#include "gpusched/kernel.h"

#define EMBEDDING 32
#define HIDDEN 64
#define TOP 8
#define TOP_BLOCK 256
#define LOWEST (-3.0e38f)
#define NOBODY 0xffffffffu

// x[row] = embedding of item ids[row] x user embedding. One thread an element.
GS_KERNEL GS_BLOCK(EMBEDDING, 8, 1) void gather(GS_GLOBAL const float* GS_RESTRICT items,
                                                GS_GLOBAL const uint* GS_RESTRICT ids,
                                                GS_GLOBAL const float* GS_RESTRICT user,
                                                GS_GLOBAL float* GS_RESTRICT x) {
  const size_t e = GS_GLOBAL_ID(0), row = GS_GLOBAL_ID(1);
  x[row * EMBEDDING + e] = items[(size_t)ids[row] * EMBEDDING + e] * user[e];
}

// The same where every row names a user of its own, as in training.
GS_KERNEL GS_BLOCK(EMBEDDING, 8, 1) void gather_pairs(GS_GLOBAL const float* GS_RESTRICT items,
                                                      GS_GLOBAL const uint* GS_RESTRICT ids,
                                                      GS_GLOBAL const float* GS_RESTRICT users,
                                                      GS_GLOBAL const uint* GS_RESTRICT user_ids,
                                                      GS_GLOBAL float* GS_RESTRICT x) {
  const size_t e = GS_GLOBAL_ID(0), row = GS_GLOBAL_ID(1);
  x[row * EMBEDDING + e] =
      items[(size_t)ids[row] * EMBEDDING + e] * users[(size_t)user_ids[row] * EMBEDDING + e];
}

// h[row] = rectified (x[row] w1 + bias), for rows from `first` on; the biases are the last row of w1.
// One thread a unit.
GS_KERNEL GS_BLOCK(HIDDEN, 4, 1) void hidden_layer(GS_GLOBAL const float* GS_RESTRICT x,
                                                   GS_GLOBAL const float* GS_RESTRICT w1,
                                                   uint first, GS_GLOBAL float* GS_RESTRICT h) {
  const size_t unit = GS_GLOBAL_ID(0), row = first + GS_GLOBAL_ID(1);
  float sum = w1[EMBEDDING * HIDDEN + unit];
  for (int e = 0; e < EMBEDDING; ++e) sum += x[row * EMBEDDING + e] * w1[e * HIDDEN + unit];
  h[row * HIDDEN + unit] = sum > 0.0f ? sum : 0.0f;
}

// scores[row] = h[row] w2 + bias, the last of w2. One thread a row.
GS_KERNEL GS_BLOCK(64, 1, 1) void score_layer(GS_GLOBAL const float* GS_RESTRICT h,
                                              GS_GLOBAL const float* GS_RESTRICT w2,
                                              GS_GLOBAL float* GS_RESTRICT scores) {
  const size_t row = GS_GLOBAL_ID(0);
  float sum = w2[HIDDEN];
  for (int unit = 0; unit < HIDDEN; ++unit) sum += h[row * HIDDEN + unit] * w2[unit];
  scores[row] = sum;
}

// The block's TOP best of TOP_BLOCK x `each` scores, best first; of equal ones the earlier. Each
// thread looks for the best of its own `each`, the block picks the best of those, and only the
// thread that gave it looks again.
GS_KERNEL GS_BLOCK(TOP_BLOCK, 1, 1) void top_of_block(GS_GLOBAL const float* GS_RESTRICT scores,
                                                      GS_GLOBAL const uint* GS_RESTRICT ids,
                                                      uint each,
                                                      GS_GLOBAL uint* GS_RESTRICT best_ids,
                                                      GS_GLOBAL float* GS_RESTRICT best_scores) {
  GS_LOCAL float score[TOP_BLOCK];
  GS_LOCAL uint at[TOP_BLOCK];
  GS_LOCAL uint winner[TOP_BLOCK];
  GS_LOCAL uint taken[TOP];
  const uint thread = (uint)GS_LOCAL_ID(0);
  const size_t start = (GS_GROUP_ID(0) * TOP_BLOCK + thread) * each;
  for (uint rank = 0; rank < TOP; ++rank) {
    if (rank == 0 || winner[0] == thread) {
      score[thread] = LOWEST;
      at[thread] = NOBODY;
      for (uint i = 0; i < each; ++i) {
        int free = 1;
        for (uint before = 0; before < rank; ++before) free &= taken[before] != (uint)(start + i);
        if (free && scores[start + i] > score[thread]) {
          score[thread] = scores[start + i];
          at[thread] = (uint)(start + i);
        }
      }
    }
    GS_BARRIER();
    winner[thread] = thread;
    GS_BARRIER();
    for (uint step = TOP_BLOCK / 2; step > 0; step /= 2) {
      if (thread < step) {
        const uint mine = winner[thread], other = winner[thread + step];
        if (score[other] > score[mine] || (score[other] == score[mine] && at[other] < at[mine]))
          winner[thread] = other;
      }
      GS_BARRIER();
    }
    if (thread == 0) {
      const uint row = at[winner[0]];
      taken[rank] = row;
      best_ids[GS_GROUP_ID(0) * TOP + rank] = row == NOBODY ? row : ids[row];
      best_scores[GS_GROUP_ID(0) * TOP + rank] = score[winner[0]];
    }
    GS_BARRIER();
  }
}

// error = score - wanted. One thread a row.
GS_KERNEL GS_BLOCK(64, 1, 1) void error_of(GS_GLOBAL const float* GS_RESTRICT scores,
                                           GS_GLOBAL const float* GS_RESTRICT wanted,
                                           GS_GLOBAL float* GS_RESTRICT error) {
  const size_t row = GS_GLOBAL_ID(0);
  error[row] = scores[row] - wanted[row];
}

// How w1 moves half the squared error, summed over the `rows` rows of a part. One thread a weight;
// dimension 2 counts parts, from `first` on.
GS_KERNEL GS_BLOCK(HIDDEN, 1, 1) void hidden_gradient(GS_GLOBAL const float* GS_RESTRICT x,
                                                      GS_GLOBAL const float* GS_RESTRICT h,
                                                      GS_GLOBAL const float* GS_RESTRICT w2,
                                                      GS_GLOBAL const float* GS_RESTRICT error,
                                                      uint first, uint rows,
                                                      GS_GLOBAL float* GS_RESTRICT gradient) {
  const size_t unit = GS_GLOBAL_ID(0), e = GS_GLOBAL_ID(1), part = first + GS_GLOBAL_ID(2);
  float sum = 0.0f;
  for (size_t row = part * rows; row < (part + 1) * rows; ++row) {
    // The last feature stands for the bias: it is 1 in every row.
    const float feature = e < EMBEDDING ? x[row * EMBEDDING + e] : 1.0f;
    sum += h[row * HIDDEN + unit] > 0.0f ? error[row] * feature : 0.0f;
  }
  gradient[(part * (EMBEDDING + 1) + e) * HIDDEN + unit] = sum * w2[unit];
}

// The same for w2. One thread a weight, a block a part.
GS_KERNEL GS_BLOCK(HIDDEN + 1, 1, 1) void score_gradient(GS_GLOBAL const float* GS_RESTRICT h,
                                                         GS_GLOBAL const float* GS_RESTRICT error,
                                                         uint rows,
                                                         GS_GLOBAL float* GS_RESTRICT gradient) {
  const size_t unit = GS_LOCAL_ID(0), part = GS_GROUP_ID(0);
  float sum = 0.0f;
  for (size_t row = part * rows; row < (part + 1) * rows; ++row)
    sum += error[row] * (unit < HIDDEN ? h[row * HIDDEN + unit] : 1.0f);
  gradient[part * (HIDDEN + 1) + unit] = sum;
}

// weights -= rate x the sum of the parts' gradients. One thread a weight, `count` of them.
GS_KERNEL GS_BLOCK(64, 1, 1) void move_weights(GS_GLOBAL float* GS_RESTRICT weights,
                                               GS_GLOBAL const float* GS_RESTRICT gradient,
                                               uint count, uint parts, float rate) {
  const size_t i = GS_GLOBAL_ID(0);
  if (i >= count) return;
  float sum = 0.0f;
  for (uint part = 0; part < parts; ++part) sum += gradient[part * count + i];
  weights[i] -= rate * sum;
}
