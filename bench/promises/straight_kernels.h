// Ten kernels of common shapes, for what a driver setting costs.
#pragma once

#include <array>
#include <cstddef>

namespace gpusched::bench {

struct StraightKernel {
  const char* name;
  const char* source;                        // kernel k(global float* a, global float* b)
  std::array<std::size_t, 2> global, local;  // y of 0: one dimension
};

inline constexpr std::size_t kStraightBufferBytes = 20 << 20;
inline constexpr std::array<StraightKernel, 10> kStraightKernels{{
    {"saxpy",
     "kernel void k(global float* a, global float* b) {\n"
     "  const size_t i = get_global_id(0); b[i] = 2.5f * a[i] + b[i]; }",
     {1 << 22, 0},
     {256, 0}},
    {"copy by int",
     "kernel void k(global float* a, global float* b) {\n"
     "  const int i = get_global_id(0); b[i] = a[i]; }",
     {1 << 22, 0},
     {64, 0}},
    {"stencil 2-D",
     "kernel void k(global float* a, global float* b) {\n"
     "  const int x = get_global_id(0) + 1, y = get_global_id(1) + 1;\n"
     "  const int w = get_global_size(0) + 2, i = y * w + x;\n"
     "  b[i] = a[i] * 4 - a[i - 1] - a[i + 1] - a[i - w] - a[i + w]; }",
     {2'048, 2'048},
     {16, 16}},
    {"matrix product",
     "kernel void k(global float* a, global float* b) {\n"
     "  const size_t x = get_global_id(0), y = get_global_id(1), n = get_global_size(0);\n"
     "  float s = 0;\n"
     "  for (size_t i = 0; i < n; ++i) s += a[y * n + i] * a[i * n + x];\n"
     "  b[y * n + x] = s; }",
     {128, 128},
     {16, 16}},
    {"sum in local memory",
     "kernel void k(global float* a, global float* b) {\n"
     "  local float p[256];\n"
     "  const size_t l = get_local_id(0);\n"
     "  p[l] = a[get_global_id(0)];\n"
     "  barrier(CLK_LOCAL_MEM_FENCE);\n"
     "  for (size_t s = 128; s > 0; s /= 2) {\n"
     "    if (l < s) p[l] += p[l + s];\n"
     "    barrier(CLK_LOCAL_MEM_FENCE);\n"
     "  }\n"
     "  if (l == 0) b[get_group_id(0)] = p[0]; }",
     {1 << 20, 0},
     {256, 0}},
    {"divergent",
     "kernel void k(global float* a, global float* b) {\n"
     "  const float x0 = get_global_id(0) * 0.006f - 2, y0 = get_global_id(1) * 0.006f - 1;\n"
     "  float x = 0, y = 0; int i = 0;\n"
     "  while (i < 100 && x * x + y * y < 4) {\n"
     "    const float t = x * x - y * y + x0; y = 2 * x * y + y0; x = t; ++i; }\n"
     "  b[get_global_id(1) * get_global_size(0) + get_global_id(0)] = i; }",
     {512, 256},
     {16, 8}},
    {"stride over the grid",
     "kernel void k(global float* a, global float* b) {\n"
     "  float s = 0;\n"
     "  for (size_t i = get_global_id(0); i < 1000000; i += get_global_size(0)) s += a[i];\n"
     "  b[get_global_id(0)] = s; }",
     {16'384, 0},
     {256, 0}},
    {"four threads a block",
     "kernel void k(global float* a, global float* b) {\n"
     "  const size_t i = get_global_id(0); b[i] = a[i] * 3; }",
     {1 << 20, 0},
     {4, 0}},
    {"short 2-D",
     "kernel void k(global float* a, global float* b) {\n"
     "  const size_t i = get_global_id(1) * get_global_size(0) + get_global_id(0);\n"
     "  b[i] = a[i] * 3; }",
     {512, 512},
     {8, 8}},
    {"arithmetic",
     "kernel void k(global float* a, global float* b) {\n"
     "  float x = get_global_id(0);\n"
     "  for (int i = 0; i < 2000; ++i) x = x * 1.0001f + 0.5f;\n"
     "  b[get_global_id(0)] = x; }",
     {8'192, 0},
     {64, 0}},
}};

}  // namespace gpusched::bench
