// Asks the runtime, device by device; the order of the questions keeps the answers apart.
#include "device/cuda/platform.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "device/cuda/cuda_device.h"
#include "device/cuda/error.h"
#include "gpusched/reasons.h"
#include "gpusched/units.h"

namespace gpusched::device {
namespace {

// A vectorised access to an address that is no multiple of this breaks the context for everybody.
constexpr std::uint64_t kWidestAccess = 16;
// Kept for the context, the modules' code and what kernels print: a 16th of what is free.
constexpr std::uint64_t kReservedPart = 16;
// Pinned memory that copies pass through: two milliseconds of the fastest bus.
constexpr std::size_t kStagingBytes = std::size_t{64} << 20;

struct Candidate {
  int ordinal = 0;
  std::string uuid;
  cudaDeviceProp properties{};
};

Status NoGpu(const std::string& why) {
  return Status(StatusCode::kUnavailable, reason::kUnknownDevice, why);
}

// 13'000 -> "13.0".
std::string VersionName(int version) {
  return std::to_string(version / 1'000) + "." + std::to_string(version % 1'000 / 10);
}

// CUDA_VISIBLE_DEVICES set to nothing: whoever did that wants no GPU to be found.
bool EverythingIsHidden() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible != nullptr && *visible == '\0';
}

constexpr std::string_view kStub =
    "the libcuda.so.1 that is found is the toolkit's stub, which only serves to link; remove its "
    "folder from LD_LIBRARY_PATH and install the NVIDIA driver";

// In the order in which one thing hides the next.
Result<int> CountDevices() {
  if (EverythingIsHidden()) {
    return NoGpu("CUDA_VISIBLE_DEVICES is set to nothing, which hides every GPU; unset it");
  }
  // Without a driver, and with a stub, this succeeds and tells 0: what follows knows which it is.
  int version = 0;
  const cudaError_t asked = cudaDriverGetVersion(&version);
  if (asked == cudaSuccess && version != 0 && version / 1'000 < CUDART_VERSION / 1'000) {
    return NoGpu("the NVIDIA driver is for CUDA " + VersionName(version) +
                 ", and this build needs one for CUDA " + VersionName(CUDART_VERSION) +
                 "; update the driver");
  }
  int count = 0;
  const cudaError_t counted = asked == cudaSuccess ? cudaGetDeviceCount(&count) : asked;
  if (counted == cudaErrorStubLibrary) return NoGpu(std::string(kStub));
  if (counted == cudaErrorInsufficientDriver) {
    return NoGpu("no NVIDIA driver is installed (no libcuda.so.1); install one for CUDA " +
                 VersionName(CUDART_VERSION) + " or newer");
  }
  if (counted == cudaErrorNoDevice || (counted == cudaSuccess && count == 0)) {
    return NoGpu("the NVIDIA driver finds no GPU; see whether nvidia-smi lists one");
  }
  if (counted == cudaSuccess) return count;
  const std::string what = CudaFailure("counting the GPUs", counted).message();
  if (MeansNoGpu(counted)) return NoGpu(what + "; see whether nvidia-smi works");
  return Status(StatusCode::kInternal, reason::kDeviceFailed, what);
}

std::string Uuid(const cudaDeviceProp& properties) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof properties.uuid.bytes; ++i) {
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), "%02x",
                  static_cast<unsigned char>(properties.uuid.bytes[i]));
    text += hex.data();
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

// Those that answer; what one says that does not is told where none is left.
Result<std::vector<Candidate>> FindCandidates() {
  const Result<int> count = CountDevices();
  if (!count.ok()) return count.status();
  std::vector<Candidate> found;
  std::string trouble;
  for (int ordinal = 0; ordinal < *count; ++ordinal) {
    Candidate candidate{.ordinal = ordinal, .uuid = {}, .properties = {}};
    const cudaError_t error = cudaGetDeviceProperties(&candidate.properties, ordinal);
    if (error != cudaSuccess) {
      trouble += "; " + CudaFailure("asking GPU " + std::to_string(ordinal), error).message();
      continue;
    }
    candidate.uuid = Uuid(candidate.properties);
    found.push_back(std::move(candidate));
  }
  if (found.empty()) return NoGpu("no GPU answers" + trouble);
  return found;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Capital letters make no difference.
bool Matches(const Candidate& candidate, const std::string& wanted) {
  const std::string part = Lower(wanted);
  return Lower(candidate.uuid) == part ||
         Lower(candidate.properties.name).find(part) != std::string::npos;
}

std::string Listing(const std::vector<Candidate>& candidates) {
  std::string listing;
  for (const Candidate& candidate : candidates) {
    if (!listing.empty()) listing += ", ";
    listing += candidate.uuid + " (" + candidate.properties.name + ")";
  }
  return listing;
}

Result<std::vector<Candidate>> Choose(std::vector<Candidate> all, const CudaOptions& options) {
  if (options.select.empty()) {
    all.resize(std::min<std::size_t>(all.size(), static_cast<std::size_t>(options.count)));
    return all;
  }
  std::vector<Candidate> chosen;
  for (const std::string& wanted : options.select) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Candidate& candidate) {
      return Matches(candidate, wanted) &&
             std::none_of(chosen.begin(), chosen.end(), [&](const Candidate& taken) {
               return taken.ordinal == candidate.ordinal;
             });
    });
    if (found == all.end()) {
      return Status(StatusCode::kNotFound, reason::kUnknownDevice,
                    "no (further) GPU matches '" + wanted + "'; there is " + Listing(all));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

DeviceInfo Describe(const Candidate& candidate, std::uint64_t memory_bytes) {
  const cudaDeviceProp& has = candidate.properties;
  DeviceInfo info;
  info.uuid = candidate.uuid;
  info.name = has.name;
  info.backend = "cuda";
  info.memory_bytes = memory_bytes;
  info.compute_units = static_cast<std::uint32_t>(std::max(1, has.multiProcessorCount));
  info.max_block_threads = static_cast<std::uint64_t>(has.maxThreadsPerBlock);
  info.local_memory_bytes = has.sharedMemPerBlockOptin;
  info.offset_alignment = kWidestAccess;
  info.can_cut = true;
  // One block for each multiprocessor: the first wave where WaveBlocks cannot tell.
  info.probe_units = info.compute_units;
  return info;
}

Result<std::uint64_t> MemoryToShare(const Candidate& candidate, std::uint64_t wanted) {
  std::size_t free = 0, total = 0;
  if (const cudaError_t error = cudaMemGetInfo(&free, &total); error != cudaSuccess) {
    return CudaFailure("asking for the free memory of " + candidate.uuid, error);
  }
  const std::uint64_t most = free - free / kReservedPart;
  if (wanted <= most) return wanted != 0 ? wanted : most;
  return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration,
                "device " + candidate.uuid + " has " + FormatBytes(free) +
                    " of memory free, of which " + FormatBytes(most) + " can be shared out; " +
                    FormatBytes(wanted) + " are asked for");
}

// Makes the device's primary context, which stays this process's only one on it.
Result<OpenedCuda> Open(const Candidate& candidate, const CudaOptions& options) {
  OpenedCuda opened;
  opened.ordinal = candidate.ordinal;
  const auto failed = [&](const char* what, cudaError_t error) {
    return CudaFailure(std::string(what) + " on " + candidate.uuid, error);
  };
  if (const cudaError_t error = cudaSetDevice(candidate.ordinal); error != cudaSuccess) {
    return failed("making a context", error);
  }
  const Result<std::uint64_t> memory = MemoryToShare(candidate, options.memory_bytes);
  if (!memory.ok()) return memory.status();
  opened.info = Describe(candidate, *memory);
  opened.architecture.sm =
      static_cast<std::uint32_t>(candidate.properties.major * 10 + candidate.properties.minor);
  for (int i = 0; i < 3; ++i) {
    opened.largest_grid[i] = static_cast<std::uint32_t>(candidate.properties.maxGridSize[i]);
    opened.largest_block[i] = static_cast<std::uint32_t>(candidate.properties.maxThreadsDim[i]);
  }
  // Numerically least is greatest: a range of 0 to -5 has six priorities.
  int least = 0, greatest = 0;
  if (options.priority_streams &&
      cudaDeviceGetStreamPriorityRange(&least, &greatest) != cudaSuccess) {
    cudaGetLastError();
    least = greatest = 0;
  }
  greatest = std::max(greatest, least - static_cast<int>(kMostPriorityClasses) + 1);
  const auto make = [&](StreamHandle& stream, int priority) {
    cudaStream_t made = nullptr;
    const cudaError_t error = cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, priority);
    stream.reset(made);
    return error;
  };
  for (int priority = least; priority >= greatest; --priority) {
    const cudaError_t error = make(opened.work.emplace_back(), priority);
    if (error != cudaSuccess) return failed("making a stream", error);
  }
  opened.info.priority_classes = static_cast<std::uint32_t>(opened.work.size());
  if (const cudaError_t error = make(opened.upkeep, least); error != cudaSuccess) {
    return failed("making a stream", error);
  }
  // What is freed stays in the pool: the next allocation costs no call into the system.
  cudaMemPool_t pool = nullptr;
  std::uint64_t keep = UINT64_MAX;
  if (cudaDeviceGetDefaultMemPool(&pool, candidate.ordinal) != cudaSuccess ||
      cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep) != cudaSuccess) {
    cudaGetLastError();  // slower, but right
  }
  void* staging = nullptr;
  if (cudaHostAlloc(&staging, kStagingBytes, cudaHostAllocDefault) == cudaSuccess) {
    opened.staging.reset(static_cast<std::byte*>(staging));
    opened.staging_bytes = kStagingBytes;
  } else {
    cudaGetLastError();  // copies then go through the driver's own, which waits for each
  }
  return opened;
}

}  // namespace

Result<std::vector<std::unique_ptr<Device>>> OpenCuda(const CudaOptions& options,
                                                      const SinkFactory& sinks) {
  Result<std::vector<Candidate>> candidates = FindCandidates();
  if (!candidates.ok()) return candidates.status();
  const Result<std::vector<Candidate>> chosen = Choose(*std::move(candidates), options);
  if (!chosen.ok()) return chosen.status();
  std::vector<OpenedCuda> opened;
  for (const Candidate& candidate : *chosen) {
    Result<OpenedCuda> one = Open(candidate, options);
    if (!one.ok()) return one.status();
    opened.push_back(*std::move(one));
  }
  std::vector<std::unique_ptr<Device>> devices;
  for (OpenedCuda& one : opened) {
    CompletionSink* const sink = sinks(devices.size(), one.info);
    devices.push_back(std::make_unique<CudaDevice>(std::move(one), *sink));
  }
  return devices;
}

}  // namespace gpusched::device
