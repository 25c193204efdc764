// The stand-in's libraries and launches: images are read as the driver reads them, PTX is executed.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "device/cuda/ptx/classify.h"
#include "device/cuda/ptx/cubin.h"
#include "device/cuda/ptx/fatbin.h"
#include "device/cuda/ptx/module.h"
#include "support/fake_cudart/runtime_state.h"

using namespace gpusched::test;  // NOLINT: the functions below stand in no namespace
namespace text = gpusched::device::ptx;

namespace {

// PTX 9.0 comes with a driver of 13.0.
constexpr std::uint32_t PtxVersionOf(int driver) {
  return static_cast<std::uint32_t>(driver / 1'000 * 10 - 40 + driver % 1'000 / 10);
}

FakeGpu GpuOf(int device) {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  return all.driver.gpus[static_cast<std::size_t>(device)];
}

int DriverVersion() {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  return all.driver.version;
}

std::uint32_t TargetOf(std::string_view target) {
  std::uint32_t sm = 0;
  for (const char c : target) {
    if (c >= '0' && c <= '9') sm = sm * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return sm;
}

cudaError_t ReadPtx(std::string code, const FakeGpu& gpu, FakeLibrary& library, std::string& log) {
  const auto module = text::Module::Parse(code);
  if (!module.ok()) {
    log = module.status().message();
    return cudaErrorInvalidPtx;
  }
  if (module->version() > PtxVersionOf(DriverVersion())) return cudaErrorUnsupportedPtxVersion;
  if (TargetOf(module->target()) > static_cast<std::uint32_t>(gpu.major * 10 + gpu.minor)) {
    return cudaErrorNoKernelImageForDevice;
  }
  auto program = PtxProgram::Load(code);
  if (!program.ok()) {
    log = program.status().message();
    return cudaErrorInvalidPtx;
  }
  library.program = std::make_unique<PtxProgram>(*std::move(program));
  const text::Classification classification(*module);
  for (std::uint32_t i = 0; i < module->functions().size(); ++i) {
    const text::Function& function = module->functions()[i];
    if (!function.is_entry || !function.has_body) continue;
    auto kernel = std::make_unique<FakeKernel>();
    kernel->name = function.name;
    for (const auto& parameter : function.parameters) {
      kernel->offsets.push_back(parameter.offset);
      kernel->sizes.push_back(parameter.size);
    }
    kernel->parameter_bytes = function.parameter_bytes();
    if (function.max_block_threads != 0) {
      kernel->max_threads = static_cast<int>(function.max_block_threads);
    }
    kernel->static_shared = classification.reach(i).static_shared_bytes;
    kernel->library = &library;
    library.kernels.push_back(std::move(kernel));
  }
  return cudaSuccess;
}

cudaError_t ReadElf(std::string_view bytes, const FakeGpu& gpu, FakeLibrary& library) {
  const auto cubin = text::ParseCubin(bytes);
  if (!cubin.ok()) return cudaErrorInvalidKernelImage;
  if (cubin->sm / 10 != static_cast<std::uint32_t>(gpu.major) ||
      cubin->sm % 10 > static_cast<std::uint32_t>(gpu.minor)) {
    return cudaErrorNoKernelImageForDevice;
  }
  for (const auto& told : cubin->kernels) {
    auto kernel = std::make_unique<FakeKernel>();
    kernel->name = told.name;
    for (const auto& parameter : told.parameters) {
      kernel->offsets.push_back(parameter.offset);
      kernel->sizes.push_back(parameter.size);
      kernel->parameter_bytes = parameter.offset + parameter.size;
    }
    kernel->static_shared = told.static_shared_bytes;
    kernel->library = &library;
    library.kernels.push_back(std::move(kernel));
  }
  return cudaSuccess;
}

// The driver knows an ELF file's length from its header; so much of it is read here.
std::string_view ElfAt(const void* code) {
  const char* bytes = static_cast<const char*>(code);
  std::uint64_t sections = 0;
  std::uint16_t size = 0, count = 0;
  std::memcpy(&sections, bytes + 40, sizeof sections);
  std::memcpy(&size, bytes + 58, sizeof size);
  std::memcpy(&count, bytes + 60, sizeof count);
  std::uint64_t headers = 0;
  std::uint16_t header_size = 0, header_count = 0;
  std::memcpy(&headers, bytes + 32, sizeof headers);
  std::memcpy(&header_size, bytes + 54, sizeof header_size);
  std::memcpy(&header_count, bytes + 56, sizeof header_count);
  return {bytes, std::max(sections + std::uint64_t{size} * count,
                          headers + std::uint64_t{header_size} * header_count)};
}

FakeKernel* KernelOf(const void* function) {
  return const_cast<FakeKernel*>(static_cast<const FakeKernel*>(function));
}

// The log that the caller gave a buffer for.
void WriteLog(const std::string& log, cudaJitOption* options, void** values, unsigned count) {
  char* buffer = nullptr;
  std::size_t size = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == cudaJitErrorLogBuffer) buffer = static_cast<char*>(values[i]);
    if (options[i] == cudaJitErrorLogBufferSizeBytes) {
      size = reinterpret_cast<std::uintptr_t>(values[i]);
    }
  }
  if (buffer == nullptr || size == 0) return;
  const std::size_t length = std::min(size - 1, log.size());
  std::memcpy(buffer, log.data(), length);
  buffer[length] = '\0';
}

}  // namespace

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code,
                                cudaJitOption* jit_options, void** jit_values,
                                unsigned int jit_count, cudaLibraryOption*, void**, unsigned int) {
  const int device = CurrentDevice();
  if (const cudaError_t error = Enter(__func__, device); error != cudaSuccess) return Answer(error);
  auto loaded = std::make_unique<FakeLibrary>();
  const FakeGpu gpu = GpuOf(device);
  std::string log;
  const bool elf = std::memcmp(code,
                               "\x7f"
                               "ELF",
                               4) == 0;
  const cudaError_t error = elf ? ReadElf(ElfAt(code), gpu, *loaded)
                                : ReadPtx(static_cast<const char*>(code), gpu, *loaded, log);
  WriteLog(log, jit_options, jit_values, jit_count);
  if (error != cudaSuccess) return Answer(error);
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  *library = reinterpret_cast<cudaLibrary_t>(loaded.get());
  FakeLibrary* const key = loaded.get();
  all.libraries.emplace(key, std::move(loaded));
  return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return InAnyCase(__func__, CurrentDevice(), [=](Runtime& all) {
    all.libraries.erase(reinterpret_cast<FakeLibrary*>(library));
  });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return AtOnce(__func__, CurrentDevice(), [=](Runtime&) {
    for (const auto& each : reinterpret_cast<FakeLibrary*>(library)->kernels) {
      if (each->name != name) continue;
      *kernel = reinterpret_cast<cudaKernel_t>(each.get());
      return cudaSuccess;
    }
    return cudaErrorSymbolNotFound;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return AtOnce(__func__, CurrentDevice(), [=](Runtime&) {
    const FakeKernel* const kernel = KernelOf(function);
    cudaFuncAttributes told{};
    told.sharedSizeBytes = kernel->static_shared;
    told.maxThreadsPerBlock = kernel->max_threads;
    told.maxDynamicSharedSizeBytes = kernel->dynamic_limit;
    told.numRegs = 32;
    *attributes = told;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return AtOnce(__func__, CurrentDevice(), [=](Runtime&) {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0) {
      return cudaErrorInvalidValue;
    }
    KernelOf(function)->dynamic_limit = value;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetParamInfo(const void* function, std::size_t index, std::size_t* offset,
                                 std::size_t* size) {
  return AtOnce(__func__, CurrentDevice(), [=](Runtime&) {
    const FakeKernel* const kernel = KernelOf(function);
    if (index >= kernel->offsets.size()) return cudaErrorInvalidValue;
    *offset = kernel->offsets[index];
    *size = kernel->sizes[index];
    return cudaSuccess;
  });
}

namespace {

// Where registers do not bind: by whole warps, by blocks, and by shared memory, of which the driver
// keeps some for itself in each block. 0: such a block does not run at all.
int BlocksSideBySide(const cudaDeviceProp& device, const FakeKernel& kernel, int threads,
                     std::size_t dynamic_shared) {
  if (threads > kernel.max_threads ||
      dynamic_shared > static_cast<std::size_t>(kernel.dynamic_limit)) {
    return 0;
  }
  const int whole_warps = (threads + device.warpSize - 1) / device.warpSize * device.warpSize;
  const int blocks =
      std::min(device.maxThreadsPerMultiProcessor / whole_warps, device.maxBlocksPerMultiProcessor);
  const std::size_t shared =
      kernel.static_shared + dynamic_shared + device.reservedSharedMemPerBlock;
  if (shared == 0) return blocks;
  return std::min(blocks, static_cast<int>(device.sharedMemPerMultiprocessor / shared));
}

}  // namespace

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int block_size,
                                                          std::size_t dynamic_shared) {
  const int device = CurrentDevice();
  return AtOnce(__func__, device, [=](Runtime& all) {
    if (block_size < 1) return cudaErrorInvalidValue;
    const FakeGpu& gpu = all.driver.gpus[static_cast<std::size_t>(device)];
    *blocks = BlocksSideBySide(PropertiesOf(gpu, device), *KernelOf(function), block_size,
                               dynamic_shared);
    return cudaSuccess;
  });
}

namespace {

cudaError_t CheckLaunch(const cudaLaunchConfig_t& config, const FakeKernel& kernel) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0 ||
      grid.x > 2'147'483'647u || grid.y > 65'535 || grid.z > 65'535 || block.z > 64 ||
      std::uint64_t{block.x} * block.y * block.z > 1'024) {
    return cudaErrorInvalidConfiguration;
  }
  if (std::uint64_t{block.x} * block.y * block.z > static_cast<std::uint64_t>(kernel.max_threads)) {
    return cudaErrorLaunchOutOfResources;
  }
  if (config.dynamicSmemBytes > static_cast<std::size_t>(kernel.dynamic_limit)) {
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

struct LaunchWork {
  std::shared_ptr<FakeLibrary> library;  // a kernel that runs keeps its code
  FakeKernel* kernel;
  std::shared_ptr<BlockTurn> turn;
  int priority;
  gpusched::device::Dim3 grid, block;
  std::uint64_t dynamic_shared;
  std::vector<std::byte> parameters;

  // CUDA's code for what became of it.
  cudaError_t operator()() const {
    Runtime& all = runtime();
    std::unique_lock lock(all.mutex);
    const auto known = all.allocations;  // keeps what the kernel may touch
    lock.unlock();
    auto last = known.end();
    const Memory memory = [&](std::uint64_t address, std::size_t bytes) -> std::byte* {
      if (last == known.end() || address < last->first ||
          address - last->first >= last->second->size) {
        last = known.upper_bound(address);
        if (last == known.begin()) {
          last = known.end();
          return nullptr;
        }
        --last;
      }
      const std::size_t into = address - last->first;
      if (into > last->second->size || bytes > last->second->size - into) return nullptr;
      return last->second->bytes.get() + into;
    };
    PtxLaunch launch;
    launch.kernel = kernel->name;
    launch.grid = grid;
    launch.block = block;
    launch.parameters = parameters;
    launch.dynamic_shared_bytes = dynamic_shared;
    launch.before_block = [this] { turn->Take(priority); };
    launch.after_block = [this] { turn->Give(); };
    {
      std::unique_lock released(runtime().mutex);
      runtime().released.wait(released, [&] { return runtime().held_kernel != kernel->name; });
    }
    const std::lock_guard one(library->mutex);
    const gpusched::Status status = library->program->Launch(launch, memory);
    switch (status.code()) {
      case gpusched::StatusCode::kOk: return cudaSuccess;
      case gpusched::StatusCode::kOutOfRange: return cudaErrorIllegalAddress;
      case gpusched::StatusCode::kDeadlineExceeded: return cudaErrorLaunchTimeout;
      default: return cudaErrorLaunchFailure;
    }
  }
};

}  // namespace

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  const cudaStream_t stream = config->stream;
  if (const cudaError_t error = Enter(__func__, stream->device); error != cudaSuccess) {
    return Answer(error);
  }
  FakeKernel* const kernel = KernelOf(function);
  if (const cudaError_t error = CheckLaunch(*config, *kernel); error != cudaSuccess) {
    return Answer(error);
  }
  if (kernel->library->program == nullptr) return Answer(cudaErrorNotSupported);
  const dim3 grid = config->gridDim, block = config->blockDim;
  LaunchWork work{.library = nullptr,
                  .kernel = kernel,
                  .turn = nullptr,
                  .priority = stream->priority,
                  .grid = {grid.x, grid.y, grid.z},
                  .block = {block.x, block.y, block.z},
                  .dynamic_shared = config->dynamicSmemBytes,
                  .parameters = std::vector<std::byte>(kernel->parameter_bytes)};
  for (std::size_t i = 0; i < kernel->offsets.size(); ++i) {
    std::memcpy(work.parameters.data() + kernel->offsets[i], arguments[i], kernel->sizes[i]);
  }
  Runtime& all = runtime();
  {
    const std::lock_guard lock(all.mutex);
    work.library = all.libraries.at(kernel->library);
    work.turn = all.turns.at(static_cast<std::size_t>(stream->device));
    ++all.launched.launches;
    all.launched.blocks += gpusched::device::Volume(work.grid);
  }
  stream->Append(std::move(work));
  return cudaSuccess;
}
