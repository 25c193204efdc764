// Orders become OpenCL commands; what cannot be enqueued is reported in its place in the line.
#include "device/opencl/opencl_device.h"

#include <array>
#include <utility>

#include "device/device_clock.h"
#include "device/opencl/cut_prelude.h"
#include "device/opencl/error.h"
#include "device/opencl/worker_nice.h"
#include "device/refusals.h"

namespace gpusched::device {
namespace {

// Sub-buffers kept per buffer: enough for what a service repeats, few enough to forget about.
constexpr std::size_t kMostParts = 256;

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // Clang needs to be told until version 17

Status BadRange(const KernelInfo& info, const std::string& why) {
  return Status(StatusCode::kInvalidArgument, reason::kBadGrid,
                "a launch of kernel '" + info.name + "': " + why);
}

// A part of a launch run as the whole would compute twice; an argument not given would be the one
// of an earlier launch, whose buffer may be gone.
Status CheckShape(const LaunchCommand& launch, const KernelInfo& info) {
  const std::uint64_t volume = Volume(launch.grid);
  const bool whole = launch.first == 0 && launch.count == volume;
  if (!whole && !info.cuttable)
    return BadRange(info, "it cannot run in parts; " + info.whole_reason);
  if (launch.count == 0 || launch.first >= volume || launch.count > volume - launch.first) {
    return BadRange(info, "blocks " + std::to_string(launch.first) + " and " +
                              std::to_string(launch.count) + " on are not among its " +
                              std::to_string(volume));
  }
  const std::size_t given = launch.arguments != nullptr ? launch.arguments->size() : 0;
  if (given == info.parameters.size()) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, reason::kArgumentCount,
                "kernel '" + info.name + "' takes " + std::to_string(info.parameters.size()) +
                    " arguments, not " + std::to_string(given));
}

// What clEnqueueNDRangeKernel is asked for.
struct NdRange {
  cl_uint dimensions = 3;
  std::array<std::size_t, 3> offset{}, global{}, local{};
};

// The range as a row of blocks, by the channel of cut_prelude.h.
Result<NdRange> RowOf(const LaunchCommand& launch, const KernelInfo& info) {
  const auto channel = ChannelOf(launch);
  if (!channel) {
    return BadRange(info,
                    "a grid has fewer than 2^32 blocks in all and 2^31 along an axis on this "
                    "device, an offset is below 2^20; launch it in parts of your own");
  }
  const Dim3 block = launch.block;
  return NdRange{.offset = *channel,
                 .global = {launch.count * block.x, block.y, block.z},
                 .local = {block.x, block.y, block.z}};
}

NdRange WholeOf(const LaunchCommand& launch) {
  const Dim3 grid = launch.grid, block = launch.block, offset = launch.offset;
  const auto wide = [](std::uint32_t value) { return std::size_t{value}; };
  return {.dimensions = DimensionsOf(launch),
          .offset = {offset.x, offset.y, offset.z},
          .global = {wide(grid.x) * block.x, wide(grid.y) * block.y, wide(grid.z) * block.z},
          .local = {block.x, block.y, block.z}};
}

Status Checked(std::string_view what, cl_int error) {
  return error == CL_SUCCESS ? Status::Ok() : ClFailure(what, error);
}

}  // namespace

OpenClDevice::OpenClDevice(OpenedOpenCl opened, CompletionSink& sink)
    : opened_(std::move(opened)),
      sink_(sink),
      sessions_(opened_.info.memory_bytes),
      waiter_(sink),
      line_(/*has_slow=*/true, YieldToLatency) {}

OpenClDevice::~OpenClDevice() = default;

Status OpenClDevice::OpenSession(SessionId session, Quota quota) {
  Result<std::shared_ptr<Arena>> arena =
      Arena::Make("gpusched-session-" + std::to_string(session.serial));
  if (!arena) return arena.status();
  return sessions_.Open(session, quota, *std::move(arena));
}

void OpenClDevice::CloseSession(SessionId session, Ticket ticket) {
  line_.Append(session, Pace::kQuick, [this, session, ticket] {
    sink_.Post(Prepared{.ticket = ticket, .status = sessions_.Close(session), .module = {}});
  });
}

void OpenClDevice::Prepare(Ticket ticket, Preparation preparation) {
  const SessionId session = SessionOf(preparation);
  const Pace pace = std::holds_alternative<LoadModule>(preparation) ? Pace::kSlow : Pace::kQuick;
  line_.Append(session, pace, [this, ticket, preparation = std::move(preparation)] {
    Prepared prepared;
    prepared.ticket = ticket;
    prepared.status =
        std::visit(Overloaded{
                       [&](const LoadModule& load) { return Carry(load, prepared.module); },
                       [&](const auto& other) { return Carry(other); },
                   },
                   preparation);
    sink_.Post(std::move(prepared));
  });
}

void OpenClDevice::Start(Ticket ticket, const Command& command) {
  CompletionWaiter::Started started;
  started.ticket = ticket;
  started.submitted = command.submitted;
  started.expected = command.expected;
  started.before = DeviceNow();
  started.error =
      std::visit([&](const auto& what) { return Enqueue(what, started.event); }, command.what);
  forgotten_parts_.clear();  // what was enqueued keeps its own
  if (started.event) clFlush(opened_.queue.get());
  started.after = DeviceNow();
  waiter_.Append(std::move(started));
}

Status OpenClDevice::Enqueue(const LaunchCommand& launch, EventHandle& event) {
  const Result<OpenClModule*> module = sessions_.FindModule(launch.session, launch.module);
  if (!module) return module.status();
  const auto& kernels = (*module)->kernels;
  if (launch.kernel >= kernels.size()) return NoSuchKernel(launch.kernel, kernels.size());
  const KernelInfo& info = (*module)->info.kernels[launch.kernel];
  Status shape = CheckShape(launch, info);
  if (!shape.ok()) return shape;
  const Result<NdRange> range =
      (*module)->runs_ranges ? RowOf(launch, info) : Result<NdRange>(WholeOf(launch));
  if (!range) return range.status();
  const cl_kernel kernel = kernels[launch.kernel].get();
  Status arguments = SetArguments(kernel, launch);
  if (!arguments.ok()) return arguments;
  cl_event raw = nullptr;
  const cl_int error =
      clEnqueueNDRangeKernel(opened_.queue.get(), kernel, range->dimensions, range->offset.data(),
                             range->global.data(), range->local.data(), 0, nullptr, &raw);
  event.reset(raw);
  return Checked("launching kernel '" + info.name + "'", error);
}

Status OpenClDevice::SetArguments(cl_kernel kernel, const LaunchCommand& launch) {
  for (std::uint32_t i = 0; launch.arguments != nullptr && i < launch.arguments->size(); ++i) {
    Status status = SetArgument(kernel, i, launch.session, (*launch.arguments)[i]);
    if (!status.ok()) return status;
  }
  return Status::Ok();
}

Status OpenClDevice::SetArgument(cl_kernel kernel, std::uint32_t index, SessionId session,
                                 const Argument& argument) {
  const std::string what = "setting argument " + std::to_string(index);
  if (const auto* value = std::get_if<ValueArgument>(&argument)) {
    return Checked(what, clSetKernelArg(kernel, index, value->size(), value->data()));
  }
  if (const auto* local = std::get_if<LocalArgument>(&argument)) {
    return Checked(what, clSetKernelArg(kernel, index, local->bytes, nullptr));
  }
  const auto& named = std::get<BufferArgument>(argument);
  const Result<Buffer*> buffer = FindBuffer(session, named.buffer);
  if (!buffer) return buffer.status();
  const Result<cl_mem> part = Part(**buffer, named.offset);
  if (!part) return part.status();
  const cl_mem memory = *part;
  return Checked(what, clSetKernelArg(kernel, index, sizeof memory, &memory));
}

// The buffer from `offset` on.
Result<cl_mem> OpenClDevice::Part(Buffer& buffer, std::uint64_t offset) {
  if (offset == 0) return buffer.memory.get();
  if (offset >= buffer.bytes) return CheckRange(offset, 0, 1, 1, buffer.bytes);
  if (offset % opened_.info.offset_alignment != 0) {
    return Status(StatusCode::kInvalidArgument, reason::kMisaligned,
                  "a buffer argument begins at offset " + std::to_string(offset) +
                      "; on this device it must be a multiple of " +
                      std::to_string(opened_.info.offset_alignment));
  }
  const auto found = buffer.parts.find(offset);
  if (found != buffer.parts.end()) return found->second.get();
  if (buffer.parts.size() >= kMostParts) {
    forgotten_parts_.push_back(std::exchange(buffer.parts, {}));
  }
  const cl_buffer_region region{offset, buffer.bytes - offset};
  cl_int error = CL_SUCCESS;
  MemoryHandle part(
      clCreateSubBuffer(buffer.memory.get(), 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
  if (error != CL_SUCCESS) return ClFailure("taking a part of a buffer", error);
  return buffer.parts.emplace(offset, std::move(part)).first->second.get();
}

template <typename Copy>
Result<cl_mem> OpenClDevice::Target(const Copy& copy) {
  const Result<Buffer*> buffer = FindBuffer(copy.session, copy.buffer);
  if (!buffer) return buffer.status();
  Status status = CheckRange(copy.offset, copy.first, copy.count, copy.total, (*buffer)->bytes);
  if (!status.ok()) return status;
  return (*buffer)->memory.get();
}

Status OpenClDevice::Enqueue(const CopyInCommand& copy, EventHandle& event) {
  const Result<cl_mem> target = Target(copy);
  if (!target) return target.status();
  if (copy.count == 0) return Status::Ok();
  cl_event raw = nullptr;
  const cl_int error =
      clEnqueueWriteBuffer(opened_.queue.get(), *target, CL_FALSE, copy.offset + copy.first,
                           copy.count, copy.source + copy.first, 0, nullptr, &raw);
  event.reset(raw);
  return Checked("copying in", error);
}

Status OpenClDevice::Enqueue(const CopyOutCommand& copy, EventHandle& event) {
  const Result<cl_mem> source = Target(copy);
  if (!source) return source.status();
  if (copy.count == 0) return Status::Ok();
  cl_event raw = nullptr;
  const cl_int error =
      clEnqueueReadBuffer(opened_.queue.get(), *source, CL_FALSE, copy.offset + copy.first,
                          copy.count, copy.target + copy.first, 0, nullptr, &raw);
  event.reset(raw);
  return Checked("copying out", error);
}

Status OpenClDevice::Enqueue(const FillCommand& fill, EventHandle& event) {
  const Result<cl_mem> target = Target(fill);
  if (!target) return target.status();
  if (fill.count == 0) return Status::Ok();
  cl_event raw = nullptr;
  const cl_int error =
      clEnqueueFillBuffer(opened_.queue.get(), *target, &fill.value, sizeof fill.value,
                          fill.offset + fill.first, fill.count, 0, nullptr, &raw);
  event.reset(raw);
  return Checked("filling", error);
}

Result<OpenClDevice::Buffer*> OpenClDevice::FindBuffer(SessionId session, BufferId buffer) {
  const auto found = sessions_.FindBuffer(session, buffer);
  if (!found) return found.status();
  return &(*found)->buffer;
}

Status OpenClDevice::Carry(const LoadModule& load, ModuleInfo& info) {
  for (const Image& image : load.images) {
    if (image.format != Image::Format::kOpenClC) continue;
    return sessions_.AddModule(load.session, load.module, [&] {
      Result<OpenClModule> module =
          BuildModule(opened_.context.get(), opened_.device, image.bytes, opened_.cannot_cut);
      if (module) info = module->info;
      return module;
    });
  }
  return Status(StatusCode::kInvalidArgument, reason::kNoUsableImage,
                "none of the module's images is OpenCL C source, the only kind device " +
                    opened_.info.uuid + " takes; add one, or choose another device");
}

Status OpenClDevice::Carry(const UnloadModule& unload) {
  return sessions_.RemoveModule(unload.session, unload.module);
}

Status OpenClDevice::Carry(const Allocate& allocate) {
  return sessions_.AddBuffer(allocate, [&](const std::shared_ptr<Arena>& arena) {
    return MakeBuffer(*arena, allocate.bytes);
  });
}

Status OpenClDevice::Carry(const Free& free) {
  return sessions_.RemoveBuffer(free.session, free.buffer);
}

Result<OpenClDevice::Buffer> OpenClDevice::MakeBuffer(Arena& arena, std::uint64_t bytes) {
  if (bytes > opened_.largest_buffer) {
    return Status(StatusCode::kResourceExhausted, reason::kDeviceMemory,
                  "a buffer of " + FormatBytes(bytes) + " does not fit: one buffer has at most " +
                      FormatBytes(opened_.largest_buffer) + " on this device; split it");
  }
  Result<std::unique_ptr<Arena::Mapping>> mapping = arena.Map(bytes);
  if (!mapping) return mapping.status();
  Buffer buffer{.bytes = bytes, .memory = nullptr, .parts = {}};
  cl_int error = CL_SUCCESS;
  buffer.memory.reset(clCreateBuffer(opened_.context.get(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                     bytes, (*mapping)->data(), &error));
  if (error != CL_SUCCESS) return ClFailure("creating a buffer", error);
  // The runtime says when it is through with the memory, which may be after our own release.
  error = clSetMemObjectDestructorCallback(
      buffer.memory.get(), [](cl_mem, void* owned) { delete static_cast<Arena::Mapping*>(owned); },
      mapping->get());
  if (error != CL_SUCCESS) return ClFailure("creating a buffer", error);
  mapping->release();
  return buffer;
}

}  // namespace gpusched::device
