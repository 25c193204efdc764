// A classifier trained by gradient steps: softmax of a linear layer, batch by batch over its data.
//
// The batch is the BATCH rows from cursor[0] on, which the end of a step moves. The last feature of
// every row is 1, so that the last row of weights are the biases. The sizes are those of trainer.h.
#include "gpusched/kernel.h"

#define FEATURES 64
#define CLASSES 10
#define ROWS_PER_PART 64

// For each row of the batch, from `first` on: its error in each class, and its loss. One thread a
// row.
GS_KERNEL GS_BLOCK(64, 1, 1) void predict(GS_GLOBAL const float* GS_RESTRICT data,
                                          GS_GLOBAL const uint* GS_RESTRICT labels,
                                          GS_GLOBAL const float* GS_RESTRICT weights,
                                          GS_GLOBAL const uint* GS_RESTRICT cursor, uint first,
                                          GS_GLOBAL float* GS_RESTRICT errors,
                                          GS_GLOBAL float* GS_RESTRICT losses) {
  const size_t row = first + GS_GLOBAL_ID(0), at = cursor[0] + row;
  float logits[CLASSES];
  for (int c = 0; c < CLASSES; ++c) logits[c] = 0.0f;
  for (int f = 0; f < FEATURES; ++f) {
    const float value = data[at * FEATURES + f];
    for (int c = 0; c < CLASSES; ++c) logits[c] += value * weights[f * CLASSES + c];
  }
  float most = logits[0];
  for (int c = 1; c < CLASSES; ++c) most = fmax(most, logits[c]);
  float sum = 0.0f;
  for (int c = 0; c < CLASSES; ++c) {
    logits[c] = exp(logits[c] - most);
    sum += logits[c];
  }
  const uint label = labels[at];
  for (int c = 0; c < CLASSES; ++c)
    errors[row * CLASSES + c] = logits[c] / sum - ((uint)c == label ? 1.0f : 0.0f);
  losses[row] = log(sum) - log(logits[label]);
}

// How the weights move the loss, summed over each part's rows. One thread a weight, dimension 1
// counts parts, from `first` on.
GS_KERNEL GS_BLOCK(64, 1, 1) void gradient_of(GS_GLOBAL const float* GS_RESTRICT data,
                                              GS_GLOBAL const float* GS_RESTRICT errors,
                                              GS_GLOBAL const uint* GS_RESTRICT cursor, uint first,
                                              GS_GLOBAL float* GS_RESTRICT gradient) {
  const size_t weight = GS_GLOBAL_ID(0), part = first + GS_GLOBAL_ID(1);
  const size_t feature = weight / CLASSES, class_of = weight % CLASSES;
  float sum = 0.0f;
  for (size_t row = part * ROWS_PER_PART; row < (part + 1) * ROWS_PER_PART; ++row)
    sum += data[(cursor[0] + row) * FEATURES + feature] * errors[row * CLASSES + class_of];
  gradient[part * (FEATURES * CLASSES) + weight] = sum;
}

// weights -= rate x the sum of the parts' gradients; the next batch is the one after this. One
// thread a weight.
GS_KERNEL GS_BLOCK(64, 1, 1) void move_weights(GS_GLOBAL float* GS_RESTRICT weights,
                                               GS_GLOBAL const float* GS_RESTRICT gradient,
                                               uint parts, float rate,
                                               GS_GLOBAL uint* GS_RESTRICT cursor, uint rows) {
  const size_t weight = GS_GLOBAL_ID(0);
  float sum = 0.0f;
  for (uint part = 0; part < parts; ++part) sum += gradient[part * (FEATURES * CLASSES) + weight];
  weights[weight] -= rate * sum;
  if (weight == 0) {
    const uint next = cursor[0] + parts * ROWS_PER_PART;
    cursor[0] = next + parts * ROWS_PER_PART <= rows ? next : 0;
  }
}
