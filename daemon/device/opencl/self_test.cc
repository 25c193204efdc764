// One kernel text, built with and without the prelude in one program, writes every id there is.
#include "device/opencl/self_test.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/opencl/cut_prelude.h"
#include "device/opencl/handle.h"
#include "device/opencl/program.h"

namespace gpusched::device {
namespace {

// What each thread writes: its number of dimensions, then seven answers for each of four
// dimensions, the last of which no device has. The index is a run-time value.
constexpr std::size_t kAnswers = 7, kDimensionsAsked = 4;
constexpr std::size_t kKnown = 1 + kAnswers * 3;  // of dimensions that devices have
constexpr std::size_t kRecord = 1 + kAnswers * kDimensionsAsked;
constexpr std::string_view kBody = R"((global ulong *out, ulong first, ulong threads_kept) {
  const size_t block = (get_group_id(2) * get_num_groups(1) + get_group_id(1)) *
                           get_num_groups(0) + get_group_id(0);
  const size_t thread = (get_local_id(2) * get_local_size(1) + get_local_id(1)) *
                            get_local_size(0) + get_local_id(0);
  const size_t threads = get_local_size(0) * get_local_size(1) * get_local_size(2);
  const size_t place = (block - first) * threads + thread;
  if (place >= threads_kept) return;
  global ulong *to = out + place * 29;
  *to++ = get_work_dim();
  for (uint d = 0; d < 4; ++d) {
    *to++ = get_global_id(d);
    *to++ = get_group_id(d);
    *to++ = get_local_id(d);
    *to++ = get_global_size(d);
    *to++ = get_num_groups(d);
    *to++ = get_local_size(d);
    *to++ = get_global_offset(d);
  }
}
)";
static_assert(kRecord == 29, "the kernel says so too");

using Record = std::array<cl_ulong, kRecord>;

struct Programs {
  ProgramHandle program;
  KernelHandle straight, cut;
};

std::string Build(cl_context context, cl_device_id device, Programs& programs) {
  std::string source = "kernel void straight";
  source += kBody;
  source += CutPrelude();
  source += "kernel void cut";
  source += kBody;
  Result<ProgramHandle> program = BuildProgram(context, device, "", source);
  if (!program) return "its self-test does not build: " + program.status().message();
  programs.program = *std::move(program);
  cl_int error = CL_SUCCESS;
  programs.straight.reset(clCreateKernel(programs.program.get(), "straight", &error));
  programs.cut.reset(clCreateKernel(programs.program.get(), "cut", &error));
  return programs.straight && programs.cut ? "" : "its self-test has no kernels";
}

// A launch's blocks [window, window + blocks), each thread's record in order.
class Window {
 public:
  Window(cl_context context, cl_command_queue queue, const LaunchCommand& launch,
         std::uint64_t first, std::uint64_t blocks)
      : queue_(queue), launch_(launch), first_(first), records_(blocks * Volume(launch.block)) {
    cl_int error = CL_SUCCESS;
    memory_.reset(clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                 records_.size() * sizeof(Record), records_.data(), &error));
  }

  bool RunStraight(cl_kernel kernel) {
    const Dim3 grid = launch_.grid, block = launch_.block, offset = launch_.offset;
    const std::size_t local[3] = {block.x, block.y, block.z};
    const std::size_t global[3] = {local[0] * grid.x, local[1] * grid.y, local[2] * grid.z};
    const std::size_t offsets[3] = {offset.x, offset.y, offset.z};
    return Run(kernel, DimensionsOf(launch_), offsets, global, local);
  }
  bool RunRange(cl_kernel kernel, std::uint64_t first, std::uint64_t count) {
    launch_.first = first;
    const auto channel = ChannelOf(launch_);
    const Dim3 block = launch_.block;
    const std::size_t local[3] = {block.x, block.y, block.z};
    const std::size_t global[3] = {local[0] * count, local[1], local[2]};
    return channel && Run(kernel, 3, channel->data(), global, local);
  }
  std::vector<Record> Read() {
    if (clEnqueueReadBuffer(queue_, memory_.get(), CL_TRUE, 0, records_.size() * sizeof(Record),
                            records_.data(), 0, nullptr, nullptr) != CL_SUCCESS) {
      return {};
    }
    return records_;
  }

 private:
  bool Run(cl_kernel kernel, cl_uint dimensions, const std::size_t* offsets,
           const std::size_t* global, const std::size_t* local) {
    cl_mem memory = memory_.get();
    const cl_ulong first = first_, kept = records_.size();
    return memory != nullptr && clSetKernelArg(kernel, 0, sizeof memory, &memory) == CL_SUCCESS &&
           clSetKernelArg(kernel, 1, sizeof first, &first) == CL_SUCCESS &&
           clSetKernelArg(kernel, 2, sizeof kept, &kept) == CL_SUCCESS &&
           clEnqueueNDRangeKernel(queue_, kernel, dimensions, offsets, global, local, 0, nullptr,
                                  nullptr) == CL_SUCCESS;
  }

  const cl_command_queue queue_;
  LaunchCommand launch_;
  const std::uint64_t first_;
  std::vector<Record> records_;
  MemoryHandle memory_;
};

// What thread `thread` of block `block` must have written, by arithmetic. The dimension that no
// device has is left to the comparison of small grids.
Record Expected(const LaunchCommand& launch, std::uint64_t block, std::uint64_t thread) {
  const auto of = [](Dim3 d) { return std::array<std::uint64_t, 3>{d.x, d.y, d.z}; };
  const auto grid = of(launch.grid), size = of(launch.block), offset = of(launch.offset);
  Record record{};
  auto to = record.begin();
  *to++ = DimensionsOf(launch);
  for (std::size_t d = 0; d < grid.size(); ++d) {
    const std::uint64_t group = block % grid[d], local = thread % size[d];
    block /= grid[d];
    thread /= size[d];
    for (const std::uint64_t answer : {group * size[d] + local + offset[d], group, local,
                                       grid[d] * size[d], grid[d], size[d], offset[d]}) {
      *to++ = answer;
    }
  }
  return record;
}

struct Case {
  Dim3 grid, block, offset;
  std::uint64_t first, count;
};
// Beyond 16 and 31 bits along an axis, beyond 31 bits in all, and the greatest offsets.
constexpr std::array kLarge{
    Case{{70'000, 1, 1}, {2, 1, 1}, {0, 0, 0}, 65'530, 40},
    Case{{0x7fffffff, 1, 1}, {4, 2, 1}, {0xfffff, 1, 0}, 0x7ffffff0, 15},
    Case{{3, 1, 0x40000000}, {1, 2, 2}, {0, 0xfffff, 0xfffff}, 0xbfffff00, 30},
    Case{{1, 0x7fffffff, 2}, {2, 1, 3}, {5, 6, 7}, 0x7ffffff8, 16},
};

LaunchCommand Launch(const Case& of) {
  LaunchCommand launch;
  launch.grid = of.grid;
  launch.block = of.block;
  launch.offset = of.offset;
  return launch;
}

bool LargeGridsAreRight(cl_context context, cl_command_queue queue, const Programs& programs) {
  for (const Case& large : kLarge) {
    const LaunchCommand launch = Launch(large);
    Window window(context, queue, launch, large.first, large.count);
    if (!window.RunRange(programs.cut.get(), large.first, large.count)) return false;
    const std::vector<Record> records = window.Read();
    const std::uint64_t threads = Volume(launch.block);
    if (records.size() != large.count * threads) return false;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const Record expected = Expected(launch, large.first + i / threads, i % threads);
      if (!std::equal(expected.begin(), expected.begin() + kKnown, records[i].begin()))
        return false;
    }
  }
  return true;
}

bool SmallGridsAreEqual(cl_context context, cl_command_queue queue, const Programs& programs) {
  for (const Case& small : {Case{{29, 1, 1}, {4, 1, 1}, {0, 0, 0}, 0, 29},
                            Case{{5, 6, 1}, {3, 2, 1}, {11, 0, 0}, 0, 30},
                            Case{{5, 3, 2}, {4, 2, 2}, {3, 0, 7}, 0, 30}}) {
    const LaunchCommand launch = Launch(small);
    Window whole(context, queue, launch, 0, small.count),
        cut(context, queue, launch, 0, small.count);
    if (!whole.RunStraight(programs.straight.get())) return false;
    for (const auto& [first, end] : {std::pair{0u, 7u}, {7u, 8u}, {8u, 23u}}) {
      if (!cut.RunRange(programs.cut.get(), first, end - first)) return false;
    }
    if (!cut.RunRange(programs.cut.get(), 23, small.count - 23)) return false;
    const std::vector<Record> expected = whole.Read();
    if (expected.empty() || cut.Read() != expected) return false;
  }
  return true;
}

}  // namespace

std::string WhyItCannotCut(cl_context context, cl_device_id device, cl_command_queue queue) {
  cl_uint address_bits = 0;
  clGetDeviceInfo(device, CL_DEVICE_ADDRESS_BITS, sizeof address_bits, &address_bits, nullptr);
  if (address_bits != 64 || sizeof(std::size_t) != 8) {
    return "this device's offsets have no 64 bits, which cutting needs";
  }
  Programs programs;
  if (std::string why = Build(context, device, programs); !why.empty()) return why;
  if (!SmallGridsAreEqual(context, queue, programs)) {
    return "this device failed the self-test: ids in a part differ from those in the whole";
  }
  if (!LargeGridsAreRight(context, queue, programs)) {
    return "this device failed the self-test: ids in large grids are wrong";
  }
  return "";
}

}  // namespace gpusched::device
