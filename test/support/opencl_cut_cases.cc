// The constructs: each kernel writes what it sees of its place in the launch.
#include "support/opencl_cut_check.h"

namespace gpusched::test {
namespace {

CutCase::Argument Buffer(std::uint64_t bytes) { return {.bytes = bytes}; }
CutCase::Argument Zeros(std::uint64_t bytes) { return {.bytes = bytes, .zeros = true}; }
CutCase::Argument Value(std::uint32_t value) {
  return {.kind = CutCase::Argument::Kind::kValue, .value = value};
}
CutCase::Argument Local(std::uint64_t bytes) {
  return {.kind = CutCase::Argument::Kind::kLocal, .bytes = bytes};
}

std::vector<CutCase> Ids() {
  return {
      {.construct = "one dimension",
       .source = "kernel void k(global uint *o) { o[get_global_id(0)] += get_group_id(0); }",
       .grid = {97, 1, 1},
       .block = {16, 1, 1},
       .arguments = {Buffer(97 * 16 * 4)}},
      {.construct = "two dimensions",
       .source = "kernel void k(global uint *o) {\n"
                 "  o[get_global_id(1) * get_global_size(0) + get_global_id(0)] ^=\n"
                 "      get_group_id(0) * 1000 + get_group_id(1) * 10 + get_local_id(1);\n"
                 "}",
       .grid = {7, 11, 1},
       .block = {8, 4, 1},
       .arguments = {Buffer(7 * 8 * 11 * 4 * 4)}},
      {.construct = "three dimensions",
       .source =
           "kernel void k(global uint *o) {\n"
           "  const size_t at = (get_global_id(2) * get_global_size(1) + get_global_id(1)) *\n"
           "                        get_global_size(0) + get_global_id(0);\n"
           "  o[at] += get_group_id(2) * 10000 + get_group_id(1) * 100 + get_group_id(0);\n"
           "}",
       .grid = {5, 3, 4},
       .block = {4, 2, 3},
       .arguments = {Buffer(5 * 3 * 4 * 24 * 4)}},
      {.construct = "an offset of the user's own",
       .source = "kernel void k(global uint *o) {\n"
                 "  const size_t x = get_global_id(0) - get_global_offset(0);\n"
                 "  const size_t y = get_global_id(1) - get_global_offset(1);\n"
                 "  o[y * get_global_size(0) + x] = get_global_id(0) * 7 + get_global_id(1) +\n"
                 "                                  get_global_offset(2);\n"
                 "}",
       .grid = {9, 6, 1},
       .block = {4, 2, 1},
       .offset = {1'000'003, 77, 0},
       .arguments = {Buffer(9 * 4 * 6 * 2 * 4)}},
      {.construct = "group ids and counts",
       .source =
           "kernel void k(global uint *o) {\n"
           "  const size_t g = get_group_id(1) * get_num_groups(0) + get_group_id(0);\n"
           "  o[g] = get_num_groups(0) + 100 * get_num_groups(1) + 10000 * get_num_groups(2);\n"
           "}",
       .grid = {13, 5, 1},
       .block = {2, 2, 1},
       .arguments = {Buffer(13 * 5 * 4)}},
      {.construct = "global and linear ids and sizes",
       .source = "kernel void k(global ulong *o) {\n"
                 "  const size_t linear = (get_global_id(1) - get_global_offset(1)) *\n"
                 "      get_global_size(0) + get_global_id(0) - get_global_offset(0);\n"
                 "#if __OPENCL_C_VERSION__ >= 200\n"
                 "  o[get_global_linear_id()] = linear;\n"
                 "#else\n"
                 "  o[linear] = linear ^ get_global_size(1) ^ get_work_dim();\n"
                 "#endif\n"
                 "}",
       .grid = {6, 9, 1},
       .block = {8, 2, 1},
       .arguments = {Buffer(6 * 9 * 16 * 8)}},
      {.construct = "dimensions indexed at run time",
       .source =
           "kernel void k(global ulong *o, uint n) {\n"
           "  const size_t at = get_global_id(1) * get_global_size(0) + get_global_id(0);\n"
           "  ulong sum = get_work_dim();\n"
           "  for (uint d = 0; d < n; ++d)\n"
           "    sum = sum * 31 + get_global_id(d) + 3 * get_group_id(d) + 5 * get_local_id(d) +\n"
           "          7 * get_global_size(d) + 11 * get_num_groups(d) +\n"
           "          13 * get_local_size(d) + 17 * get_global_offset(d);\n"
           "  o[at] = sum;\n"
           "}",
       .grid = {6, 7, 1},
       .block = {4, 3, 1},
       .offset = {0, 0, 0},
       .arguments = {Buffer(6 * 7 * 12 * 8), Value(5)}},
      {.construct = "a stride over the grid",
       .source = "kernel void k(global const uint *i, global uint *o, uint n) {\n"
                 "  uint sum = 0;\n"
                 "  for (size_t at = get_global_id(0); at < n; at += get_global_size(0))\n"
                 "    sum = sum * 3 + i[at];\n"
                 "  o[get_global_id(0)] = sum;\n"
                 "}",
       .grid = {30, 1, 1},
       .block = {8, 1, 1},
       .arguments = {Buffer(4'000), Buffer(30 * 8 * 4), Value(1'000)}},
      {.construct = "more blocks than 16 bits count",
       .source =
           "kernel void k(global uint *o) {\n"
           "  o[get_global_id(0)] = get_group_id(0) * 2654435761u + (get_global_id(0) >> 3);\n"
           "}",
       .grid = {70'001, 1, 1},
       .block = {2, 1, 1},
       .arguments = {Buffer(70'001 * 2 * 4)}},
  };
}

std::vector<CutCase> Cooperation() {
  return {
      {.construct = "local memory and barriers",
       .source = "kernel void k(global const uint *i, global uint *o) {\n"
                 "  local uint part[32];\n"
                 "  const size_t l = get_local_id(0);\n"
                 "  part[l] = i[get_global_id(0)];\n"
                 "  barrier(CLK_LOCAL_MEM_FENCE);\n"
                 "  for (size_t step = get_local_size(0) / 2; step > 0; step /= 2) {\n"
                 "    if (l < step) part[l] += part[l + step];\n"
                 "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                 "  }\n"
                 "  if (l == 0) o[get_group_id(0)] = part[0];\n"
                 "}",
       .grid = {41, 1, 1},
       .block = {32, 1, 1},
       .arguments = {Buffer(41 * 32 * 4), Buffer(41 * 4)}},
      {.construct = "local memory as an argument",
       .source = "kernel void k(global const uint *i, global uint *o, local uint *s) {\n"
                 "  const size_t l = get_local_id(1) * get_local_size(0) + get_local_id(0);\n"
                 "  const size_t w = get_global_size(0);\n"
                 "  s[l] = i[get_global_id(1) * w + get_global_id(0)];\n"
                 "  barrier(CLK_LOCAL_MEM_FENCE);\n"
                 "  o[get_global_id(1) * w + get_global_id(0)] =\n"
                 "      s[get_local_id(0) * get_local_size(1) + get_local_id(1)];\n"
                 "}",
       .grid = {6, 5, 1},
       .block = {8, 8, 1},
       .arguments = {Buffer(30 * 64 * 4), Buffer(30 * 64 * 4), Local(64 * 4)}},
      {.construct = "atomics",
       .source = "kernel void k(global uint *o, global const uint *i) {\n"
                 "  atomic_add(&o[i[get_global_id(0)] % 64], get_global_id(0));\n"
                 "  atomic_max(&o[64], get_group_id(0));\n"
                 "  atomic_xor(&o[65], i[get_global_id(0)]);\n"
                 "}",
       .grid = {50, 1, 1},
       .block = {16, 1, 1},
       .arguments = {Buffer(66 * 4), Buffer(50 * 16 * 4)}},
      {.construct = "the last block does the rest",
       .source = "kernel void k(global uint *o, volatile global uint *count, uint groups) {\n"
                 "  o[get_group_id(0)] = get_group_id(0) * get_group_id(0);\n"
                 "  mem_fence(CLK_GLOBAL_MEM_FENCE);\n"
                 "  if (atomic_inc(count) == groups - 1) {\n"
                 "    uint sum = 0;\n"
                 "    for (uint g = 0; g < groups; ++g) sum += o[g];\n"
                 "    o[groups] = sum;\n"
                 "  }\n"
                 "}",
       .grid = {64, 1, 1},
       .block = {1, 1, 1},
       .arguments = {Buffer(65 * 4), Zeros(4), Value(64)}},
      {.construct = "retries of compare and exchange",
       .source =
           "void add(volatile global uint *to, uint what) {\n"
           "  uint before, after;\n"
           "  do {\n"
           "    before = *to;\n"
           "    after = before + what;\n"
           "  } while (atomic_cmpxchg(to, before, after) != before);\n"
           "}\n"
           "kernel void k(global uint *o) { add(&o[get_global_id(0) % 7], get_group_id(0)); }",
       .grid = {33, 1, 1},
       .block = {8, 1, 1},
       .arguments = {Buffer(7 * 4)}},
      {.construct = "a required block size",
       .source = "kernel __attribute__((reqd_work_group_size(8, 4, 2)))\n"
                 "void k(global uint *o) {\n"
                 "  local uint s[8][4][2];\n"
                 "  const size_t x = get_local_id(0), y = get_local_id(1), z = get_local_id(2);\n"
                 "  s[x][y][z] = get_local_size(0) + 10 * get_local_size(1);\n"
                 "  barrier(CLK_LOCAL_MEM_FENCE);\n"
                 "  const size_t g = (get_group_id(2) * get_num_groups(1) + get_group_id(1)) *\n"
                 "                   get_num_groups(0) + get_group_id(0);\n"
                 "  o[g * 64 + (z * 4 + y) * 8 + x] = s[7 - x][3 - y][1 - z] + g;\n"
                 "}",
       .grid = {3, 4, 2},
       .block = {8, 4, 2},
       .arguments = {Buffer(24 * 64 * 4)}},
  };
}

std::vector<CutCase> Language() {
  return {
      {.construct = "helper functions",
       .source = "size_t place(uint d) { return get_group_id(d) * get_local_size(d) + "
                 "get_local_id(d); }\n"
                 "inline size_t line(void) { return place(1) * get_global_size(0) + place(0); }\n"
                 "kernel void k(global uint *o) { o[line()] = get_group_id(1) + 9; }",
       .grid = {5, 8, 1},
       .block = {4, 4, 1},
       .arguments = {Buffer(40 * 16 * 4)}},
      {.construct = "macros of the user's own",
       .source = "#define ID(d) get_global_id(d)\n"
                 "#define CALL(f, d) f(d)\n"
                 "#define PICK(what) get_##what\n"
                 "#define WIDTH CALL(get_global_size, 0)\n"
                 "kernel void k(global uint *o) {\n"
                 "  o[ID(1) * WIDTH + CALL(get_global_id, 0)] =\n"
                 "      PICK(group_id)(1) * 100 + CALL(PICK(num_groups), 0);\n"
                 "}",
       .grid = {4, 9, 1},
       .block = {8, 1, 1},
       .arguments = {Buffer(36 * 8 * 4)}},
      {.construct = "names that collide",
       .source = "typedef struct { uint get_global_id; uint get_group_id; } ids;\n"
                 "constant uint block = 3, blocks_x = 5, grid = 7, place = 11;\n"
                 "uint get_block(uint d) { return d + block; }\n"
                 "kernel void k(global uint *o) {\n"
                 "  ids i;\n"
                 "  i.get_global_id = get_global_id(0);\n"
                 "  i.get_group_id = get_group_id(0);\n"
                 "  const uint get_local_id = get_block(i.get_group_id) + blocks_x;\n"
                 "  o[i.get_global_id] = get_local_id * grid + place;\n"
                 "}",
       .grid = {19, 1, 1},
       .block = {4, 1, 1},
       .arguments = {Buffer(19 * 4 * 4)}},
      {.construct = "lines and conditions of the preprocessor",
       .source = "#ifdef GPUSCHED\n#error a name of ours\n#endif\n"
                 "#define LINE __LINE__\n"
                 "#line 40\n"
                 "kernel void k(global uint *o) {\n"
                 "  o[get_global_id(0)] = LINE * 1000 + get_group_id(0);\n"
                 "}",
       .grid = {23, 1, 1},
       .block = {4, 1, 1},
       .arguments = {Buffer(23 * 4 * 4)}},
      {.construct = "a kernel that calls a kernel",
       .source = "kernel void inner(global uint *o, uint add) { o[get_global_id(0)] += add; }\n"
                 "kernel void k(global uint *o) { inner(o, get_num_groups(0)); }",
       .grid = {17, 1, 1},
       .block = {8, 1, 1},
       .arguments = {Buffer(17 * 8 * 4)}},
      {.construct = "vectors",
       .source =
           "kernel void k(global float4 *o) {\n"
           "  const float4 at = convert_float4((uint4)(get_global_id(0), get_group_id(0),\n"
           "                                           get_local_id(0), get_num_groups(0)));\n"
           "  o[get_global_id(0)] = at.wzyx * 0.5f + (float4)(get_global_size(0));\n"
           "}",
       .grid = {31, 1, 1},
       .block = {8, 1, 1},
       .arguments = {Buffer(31 * 8 * 16)}},
      {.construct = "narrow arithmetic on ids",
       .source = "kernel void k(global uint *o) {\n"
                 "  const int x = get_global_id(0), n = get_global_size(0);\n"
                 "  const short s = get_group_id(0);\n"
                 "  const uchar c = get_global_id(0);\n"
                 "  o[n - 1 - x] = s * 3 + c + (x % 5 == 0 ? -x : x);\n"
                 "}",
       .grid = {300, 1, 1},
       .block = {4, 1, 1},
       .arguments = {Buffer(300 * 4 * 4)}},
      {.construct = "early returns",
       .source = "kernel void k(global uint *o, uint n) {\n"
                 "  if (get_global_id(0) >= n || get_group_id(1) == 2) return;\n"
                 "  o[get_global_id(1) * n + get_global_id(0)] = get_global_id(0);\n"
                 "}",
       .grid = {7, 6, 1},
       .block = {8, 1, 1},
       .arguments = {Buffer(6 * 50 * 4), Value(50)}},
  };
}

}  // namespace

const std::vector<CutCase>& CutCases() {
  static const std::vector<CutCase> cases = [] {
    std::vector<CutCase> all = Ids();
    for (auto more : {Cooperation(), Language()}) all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return cases;
}

}  // namespace gpusched::test
