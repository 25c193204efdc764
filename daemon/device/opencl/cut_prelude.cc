// The renamed functions, and the layout of the channel they read.
#include "device/opencl/cut_prelude.h"

#include <algorithm>

namespace gpusched::device {
namespace {

// The channel, as the prelude below reads it:
//   offset 0: first block (32 bits), blocks along x (31 bits)
//   offset 1: blocks along y (32 bits), blocks along z (31 bits)
//   offset 2: the launch's own offsets (3 x 20 bits), its number of dimensions (2 bits)
// The top bits stay clear, so that no driver sees an offset plus a size overflow.
constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 32;
constexpr std::uint32_t kMostAlongAxis = std::uint32_t{1} << 31;

// Found by failures of other forms: the native functions are called with constant dimensions only
// (PoCL links others to symbols it does not have); macros are object-like, so that a name passed to
// a macro is renamed too; `inline` is not `static`, which OpenCL C 1.1 rejects. A dimension
// that no device has is answered by the device: 1 for sizes by the specification, 0 by PoCL.
// Numbers below 2^32 divide exactly as doubles; an integer division, which is undefined for a
// divisor of zero, may not leave the loops that PoCL makes of a block, and a two-dimensional
// stencil was then not vectorised (2.4 times slower).
constexpr std::string_view kPrelude = R"(
#define __gpusched_inline inline __attribute__((always_inline))
__gpusched_inline uint __gpusched_block(void) {
  return (uint)get_global_offset(0) + (uint)get_group_id(0);
}
__gpusched_inline uint __gpusched_blocks_x(void) { return (uint)(get_global_offset(0) >> 32); }
__gpusched_inline uint __gpusched_blocks_y(void) { return (uint)get_global_offset(1); }
__gpusched_inline uint __gpusched_blocks_z(void) { return (uint)(get_global_offset(1) >> 32); }
#ifdef cl_khr_fp64
__gpusched_inline uint __gpusched_over(uint a, uint b) { return (uint)((double)a / (double)b); }
#else
__gpusched_inline uint __gpusched_over(uint a, uint b) { return a / b; }
#endif
__gpusched_inline uint __gpusched_row(void) {
  return __gpusched_over(__gpusched_block(), __gpusched_blocks_x());
}
__gpusched_inline uint __gpusched_plane(void) {
  return __gpusched_over(__gpusched_row(), __gpusched_blocks_y());
}
__gpusched_inline size_t __gpusched_get_global_offset(uint d) {
  return d > 2 ? get_global_offset(3) : (get_global_offset(2) >> (20 * d)) & 0xfffff;
}
__gpusched_inline uint __gpusched_get_work_dim(void) { return (uint)(get_global_offset(2) >> 60); }
__gpusched_inline size_t __gpusched_get_num_groups(uint d) {
  return d == 0   ? __gpusched_blocks_x()
         : d == 1 ? __gpusched_blocks_y()
         : d == 2 ? __gpusched_blocks_z()
                  : get_num_groups(3);
}
__gpusched_inline size_t __gpusched_get_group_id(uint d) {
  return d == 0   ? __gpusched_block() - __gpusched_row() * __gpusched_blocks_x()
         : d == 1 ? __gpusched_row() - __gpusched_plane() * __gpusched_blocks_y()
         : d == 2 ? __gpusched_plane()
                  : get_group_id(3);
}
__gpusched_inline size_t __gpusched_get_local_size(uint d) {
  return d == 0   ? get_local_size(0)
         : d == 1 ? get_local_size(1)
         : d == 2 ? get_local_size(2)
                  : get_local_size(3);
}
__gpusched_inline size_t __gpusched_get_local_id(uint d) {
  return d == 0   ? get_local_id(0)
         : d == 1 ? get_local_id(1)
         : d == 2 ? get_local_id(2)
                  : get_local_id(3);
}
__gpusched_inline size_t __gpusched_get_global_size(uint d) {
  return d > 2 ? get_global_size(3) : __gpusched_get_num_groups(d) * __gpusched_get_local_size(d);
}
__gpusched_inline size_t __gpusched_get_global_id(uint d) {
  return d > 2 ? get_global_id(3)
               : __gpusched_get_group_id(d) * __gpusched_get_local_size(d) +
                     __gpusched_get_local_id(d) + __gpusched_get_global_offset(d);
}
#if __OPENCL_C_VERSION__ >= 200
__gpusched_inline size_t __gpusched_place(uint d) {
  return __gpusched_get_group_id(d) * __gpusched_get_local_size(d) + __gpusched_get_local_id(d);
}
__gpusched_inline size_t __gpusched_get_global_linear_id(void) {
  return (__gpusched_place(2) * __gpusched_get_global_size(1) + __gpusched_place(1)) *
             __gpusched_get_global_size(0) +
         __gpusched_place(0);
}
#define get_global_linear_id __gpusched_get_global_linear_id
#define get_enqueued_local_size __gpusched_get_local_size
#endif
#undef __gpusched_inline
#define get_global_offset __gpusched_get_global_offset
#define get_work_dim __gpusched_get_work_dim
#define get_num_groups __gpusched_get_num_groups
#define get_group_id __gpusched_get_group_id
#define get_local_size __gpusched_get_local_size
#define get_local_id __gpusched_get_local_id
#define get_global_size __gpusched_get_global_size
#define get_global_id __gpusched_get_global_id
#line 1
)";

constexpr std::array<std::string_view, 10> kRenamed{
    "get_global_offset",    "get_work_dim",           "get_num_groups",  "get_group_id",
    "get_local_size",       "get_local_id",           "get_global_size", "get_global_id",
    "get_global_linear_id", "get_enqueued_local_size"};

}  // namespace

std::uint32_t DimensionsOf(const LaunchCommand& launch) {
  if (launch.grid.z > 1 || launch.block.z > 1 || launch.offset.z > 0) return 3;
  if (launch.grid.y > 1 || launch.block.y > 1 || launch.offset.y > 0) return 2;
  return 1;
}

std::optional<std::array<std::size_t, 3>> ChannelOf(const LaunchCommand& launch) {
  const Dim3 grid = launch.grid, offset = launch.offset;
  if (Volume(grid) >= kMostBlocks || std::max({grid.x, grid.y, grid.z}) >= kMostAlongAxis ||
      std::max({offset.x, offset.y, offset.z}) >= kOffsetLimit) {
    return std::nullopt;
  }
  const auto wide = [](std::uint64_t value) { return value; };
  return std::array<std::size_t, 3>{
      launch.first | wide(grid.x) << 32, grid.y | wide(grid.z) << 32,
      offset.x | wide(offset.y) << 20 | wide(offset.z) << 40 | wide(DimensionsOf(launch)) << 60};
}

std::string_view CutPrelude() { return kPrelude; }

std::span<const std::string_view> RenamedFunctions() { return kRenamed; }

}  // namespace gpusched::device
