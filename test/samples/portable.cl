// Every word of kernel.h once; what it computes is compared by portable_kernel.cc.
#include "gpusched/kernel.h"

GS_CONSTANT float kScale[2] = {2.0f, 0.5f};

GS_FUNCTION float scaled(GS_LOCAL_POINTER const float* part, uint i) {
  return part[i] * kScale[i % 2u];
}

// out[i]: sum over the block of in, scaled, plus an index made of every id and size.
GS_KERNEL GS_BLOCK(8, 4, 2) void all_words(GS_GLOBAL const float* in, GS_GLOBAL float* out,
                                           GS_GLOBAL int* counters) {
  GS_LOCAL float part[64];
  const uint l =
      (uint)((GS_LOCAL_ID(2) * GS_LOCAL_SIZE(1) + GS_LOCAL_ID(1)) * GS_LOCAL_SIZE(0) + GS_LOCAL_ID(0));
  const size_t g = (GS_GLOBAL_ID(2) * GS_GLOBAL_SIZE(1) + GS_GLOBAL_ID(1)) * GS_GLOBAL_SIZE(0) +
                   GS_GLOBAL_ID(0);
  part[l] = in[g];
  GS_BARRIER();
  float sum = 0.0f;
  for (uint i = 0; i < 64u; ++i) sum += scaled(part, i);
  const float4 four = GS_FLOAT4(sum, (float)GS_GROUP_ID(0), (float)GS_GROUPS(1), (float)GS_GROUP_ID(2));
  const float2 two = GS_FLOAT2(four.x + four.y, four.z + four.w);
  out[g] = two.x + two.y;
  GS_ATOMIC_ADD(&counters[0], 1);
  GS_ATOMIC_SUB(&counters[1], 1);
  GS_ATOMIC_MIN(&counters[2], (int)g);
  GS_ATOMIC_MAX(&counters[3], (int)g);
  if (g == 0) {
    GS_ATOMIC_EXCHANGE(&counters[4], 7);
    GS_ATOMIC_COMPARE_EXCHANGE(&counters[5], 3, 8);
    GS_ATOMIC_COMPARE_EXCHANGE(&counters[6], 3, 8);
  }
}
