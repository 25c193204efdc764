// Loads drivers with their threads below ours in priority, and makes contexts of the chosen
// devices.
#include "device/opencl/platform.h"

#include <CL/cl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "device/opencl/error.h"
#include "device/opencl/opencl_device.h"
#include "device/opencl/self_test.h"
#include "device/opencl/worker_nice.h"
#include "gpusched/reasons.h"
#include "gpusched/units.h"

namespace gpusched::device {
namespace {

// A part costs 2 to 25 us on PoCL (bench/README.md): a tenth of this at most.
constexpr Duration kShortestUsefulChunk = std::chrono::microseconds(250);

struct Candidate {
  cl_device_id device = nullptr;
  cl_device_type type = 0;
  std::string uuid;
  std::string name;
  std::string platform;
};

template <typename T>
T Fact(cl_device_id device, cl_device_info what) {
  T fact{};
  clGetDeviceInfo(device, what, sizeof fact, &fact, nullptr);
  return fact;
}

template <typename Id, typename What>
std::string Text(cl_int (*get)(Id, What, std::size_t, void*, std::size_t*), Id id, What what) {
  std::size_t size = 0;
  if (get(id, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return "";
  std::string text(size, '\0');
  get(id, what, size, text.data(), nullptr);
  text.resize(size - 1);  // without its terminator
  return text;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

// FNV-1a: the same name has the same hash in every run and build.
std::string Hash(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  std::string digits(12, '0');
  for (char& digit : digits) {
    digit = "0123456789abcdef"[hash & 15];
    hash >>= 4;
  }
  return digits;
}

Status NoDevice(const std::string& what) {
  return Status(
      StatusCode::kUnavailable, reason::kUnknownDevice,
      what +
          "; install a driver (on Debian: apt install pocl-opencl-icd for the CPU), or use "
          "--device=virtual");
}

// PoCL puts worker n on processor n: it ends the process where a container keeps that one from us,
// and takes it all the same where whoever started us left us others.
bool HasEveryProcessor() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  return sched_getaffinity(0, sizeof mine, &mine) == 0 &&
         CPU_COUNT(&mine) == sysconf(_SC_NPROCESSORS_ONLN) &&
         CPU_ISSET(CPU_COUNT(&mine) - 1, &mine);
}

// Before the first OpenCL call. With work-group specialisation PoCL builds variants that compute
// wrongly with large offsets, and compiles at the first launch what should be compiled at load.
Status PrepareEnvironment(const std::string& cache_dir) {
  setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", /*overwrite=*/1);
  // A worker stays on its processor. Left to the kernel two of them often share one, and a job
  // takes twice its time until somebody moves them apart. Who runs other things there can say 0.
  if (HasEveryProcessor()) setenv("POCL_AFFINITY", "1", /*overwrite=*/0);
  if (cache_dir.empty()) return Status::Ok();
  std::error_code error;
  std::filesystem::create_directories(cache_dir, error);
  if (error) {
    return Status(
        StatusCode::kInvalidArgument, reason::kBadConfiguration,
        "cannot make the compiler's cache directory '" + cache_dir + "': " + error.message());
  }
  setenv("POCL_CACHE_DIR", cache_dir.c_str(), /*overwrite=*/1);
  return Status::Ok();
}

// Drivers may end the process that loads them. A child of ours tries first.
Status TryDrivers() {
  const pid_t child = fork();
  if (child < 0) return Status::Ok();  // no process to spare: then without trying
  if (child == 0) {
    cl_uint count = 0;
    clGetPlatformIDs(0, nullptr, &count);
    std::vector<cl_platform_id> platforms(count);
    if (count > 0) clGetPlatformIDs(count, platforms.data(), nullptr);
    for (const cl_platform_id platform : platforms) {
      cl_uint devices = 0;
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices);
    }
    _exit(0);
  }
  int ended = 0;
  while (waitpid(child, &ended, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return Status::Ok();
  const std::string how = WIFSIGNALED(ended) ? std::string(strsignal(WTERMSIG(ended)))
                                             : "exit " + std::to_string(WEXITSTATUS(ended));
  return Status(StatusCode::kUnavailable, reason::kUnknownDevice,
                "an OpenCL driver of this machine ended the process that loaded it (" + how +
                    "); take it out of /etc/OpenCL/vendors, or name a folder of good ones in "
                    "OCL_ICD_VENDORS");
}

bool IsUsable(cl_device_id device) {
  const std::string version = Text(clGetDeviceInfo, device, cl_device_info{CL_DEVICE_VERSION});
  return Fact<cl_bool>(device, CL_DEVICE_AVAILABLE) == CL_TRUE &&
         Fact<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE) == CL_TRUE &&
         !version.starts_with("OpenCL 1.0") && !version.starts_with("OpenCL 1.1");
}

void AddCandidates(cl_platform_id platform, std::vector<Candidate>& candidates) {
  cl_uint count = 0;
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) return;
  std::vector<cl_device_id> devices(count);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!IsUsable(devices[i])) continue;
    Candidate candidate;
    candidate.device = devices[i];
    candidate.type = Fact<cl_device_type>(devices[i], CL_DEVICE_TYPE);
    candidate.name = Text(clGetDeviceInfo, devices[i], cl_device_info{CL_DEVICE_NAME});
    candidate.platform = Text(clGetPlatformInfo, platform, cl_platform_info{CL_PLATFORM_NAME});
    const bool is_pocl = candidate.platform == "Portable Computing Language";
    candidate.uuid = std::string(is_pocl ? "pocl-" : "opencl-") +
                     Hash(candidate.platform + "/" + candidate.name + "/" + std::to_string(i));
    candidates.push_back(std::move(candidate));
  }
}

// GPUs first, then whatever else is no CPU, then CPUs; otherwise in the loader's order.
int Preference(const Candidate& candidate) {
  if (candidate.type & CL_DEVICE_TYPE_GPU) return 0;
  return candidate.type & CL_DEVICE_TYPE_CPU ? 2 : 1;
}

Result<std::vector<Candidate>> FindCandidates() {
  cl_uint count = 0;
  cl_int error = clGetPlatformIDs(0, nullptr, &count);
  if (error != CL_SUCCESS || count == 0) return NoDevice("no OpenCL platform on this machine");
  std::vector<cl_platform_id> platforms(count);
  error = clGetPlatformIDs(count, platforms.data(), nullptr);
  if (error != CL_SUCCESS) return ClFailure("listing OpenCL platforms", error);
  std::vector<Candidate> candidates;
  for (const cl_platform_id platform : platforms) AddCandidates(platform, candidates);
  if (candidates.empty())
    return NoDevice("no OpenCL platform has a device of version 1.2 or later");
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return Preference(a) < Preference(b); });
  return candidates;
}

bool Matches(const Candidate& candidate, const std::string& wanted) {
  if (candidate.uuid == wanted) return true;
  const std::string part = Lower(wanted);
  return Lower(candidate.name).find(part) != std::string::npos ||
         Lower(candidate.platform).find(part) != std::string::npos;
}

std::string Listing(const std::vector<Candidate>& candidates) {
  std::string listing;
  for (const Candidate& candidate : candidates) {
    if (!listing.empty()) listing += ", ";
    listing += candidate.uuid + " (" + candidate.name + ", " + candidate.platform + ")";
  }
  return listing;
}

Result<std::vector<Candidate>> Choose(std::vector<Candidate> all, const OpenClOptions& options) {
  std::vector<Candidate> chosen;
  if (options.select.empty()) {
    all.resize(std::min<std::size_t>(all.size(), options.count));
    return all;
  }
  for (const std::string& wanted : options.select) {
    const auto is_new = [&](const Candidate& candidate) {
      return std::none_of(chosen.begin(), chosen.end(),
                          [&](const Candidate& taken) { return taken.device == candidate.device; });
    };
    const auto found = std::find_if(all.begin(), all.end(), [&](const Candidate& candidate) {
      return Matches(candidate, wanted) && is_new(candidate);
    });
    if (found == all.end()) {
      return Status(
          StatusCode::kNotFound, reason::kUnknownDevice,
          "no (further) OpenCL device matches '" + wanted + "'; there is " + Listing(all));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

Result<DeviceInfo> Describe(const Candidate& candidate, const OpenClOptions& options) {
  const cl_device_id device = candidate.device;
  DeviceInfo info;
  info.uuid = candidate.uuid;
  info.name = candidate.name;
  info.backend = "opencl";
  info.memory_bytes = Fact<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
  if (options.memory_bytes > info.memory_bytes) {
    return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration,
                  "device " + info.uuid + " has " + FormatBytes(info.memory_bytes) +
                      " of memory; " + FormatBytes(options.memory_bytes) + " cannot be shared out");
  }
  if (options.memory_bytes != 0) info.memory_bytes = options.memory_bytes;
  info.compute_units = Fact<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS);
  info.whole_up_to_blocks = info.compute_units;
  info.probe_units = info.compute_units;
  info.max_block_threads = Fact<std::size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  info.local_memory_bytes = Fact<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE);
  info.offset_alignment =
      std::max<cl_uint>(Fact<cl_uint>(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8, 1);
  info.shortest_useful_chunk = kShortestUsefulChunk;
  return info;
}

// The device without the compute units that the host keeps.
Result<DeviceHandle> PartOf(const Candidate& candidate, int spare_units) {
  const auto units =
      static_cast<std::int64_t>(Fact<cl_uint>(candidate.device, CL_DEVICE_MAX_COMPUTE_UNITS));
  const std::string what = "leaving " + std::to_string(spare_units) + " of the " +
                           std::to_string(units) + " compute units of " + candidate.name +
                           " to the host (device.spare_units)";
  if (spare_units >= units) {
    return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration,
                  what + " leaves the device none; leave fewer");
  }
  const cl_device_partition_property by_counts[] = {
      CL_DEVICE_PARTITION_BY_COUNTS, static_cast<cl_device_partition_property>(units - spare_units),
      CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
  cl_device_id part = nullptr;
  const cl_int error = clCreateSubDevices(candidate.device, by_counts, 1, &part, nullptr);
  if (error == CL_SUCCESS) return DeviceHandle(part);
  return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration,
                what + ": its driver cannot (" + ClErrorName(error) + "); leave none");
}

Result<OpenedOpenCl> Open(Candidate candidate, const OpenClOptions& options) {
  OpenedOpenCl opened;
  if (options.spare_units > 0) {
    Result<DeviceHandle> part = PartOf(candidate, options.spare_units);
    if (!part) return part.status();
    opened.part = *std::move(part);
    candidate.device = opened.part.get();
  }
  Result<DeviceInfo> info = Describe(candidate, options);
  if (!info) return info.status();
  opened.info = *std::move(info);
  opened.device = candidate.device;
  opened.largest_buffer = Fact<cl_ulong>(candidate.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  cl_int error = CL_SUCCESS;
  opened.context.reset(clCreateContext(nullptr, 1, &candidate.device, nullptr, nullptr, &error));
  if (error != CL_SUCCESS) return ClFailure("making a context on " + candidate.name, error);
  opened.queue.reset(clCreateCommandQueue(opened.context.get(), candidate.device,
                                          CL_QUEUE_PROFILING_ENABLE, &error));
  if (error != CL_SUCCESS) return ClFailure("making a queue on " + candidate.name, error);
  opened.cannot_cut = WhyItCannotCut(opened.context.get(), opened.device, opened.queue.get());
  opened.info.can_cut = opened.cannot_cut.empty();
  return opened;
}

Result<std::vector<OpenedOpenCl>> OpenAll(const OpenClOptions& options) {
  Result<std::vector<Candidate>> candidates = FindCandidates();
  if (!candidates) return candidates.status();
  Result<std::vector<Candidate>> chosen = Choose(*std::move(candidates), options);
  if (!chosen) return chosen.status();
  std::vector<OpenedOpenCl> all;
  for (const Candidate& candidate : *chosen) {
    Result<OpenedOpenCl> opened = Open(candidate, options);
    if (!opened) return opened.status();
    all.push_back(*std::move(opened));
  }
  return all;
}

}  // namespace

Result<std::vector<std::unique_ptr<Device>>> OpenOpenCl(const OpenClOptions& options,
                                                        const SinkFactory& sinks) {
  Status status = PrepareEnvironment(options.cache_dir);
  if (!status.ok()) return status;
  static const Status drivers_load = TryDrivers();  // once: later the process has its threads
  if (!drivers_load.ok()) return drivers_load;
  Result<std::vector<OpenedOpenCl>> opened = std::vector<OpenedOpenCl>();
  // A driver's threads inherit the priority of the thread that first calls it, which is therefore
  // one of its own that ends here.
  std::thread([&] {
    YieldToLatency();
    opened = OpenAll(options);
  }).join();
  if (!opened) return opened.status();
  std::vector<std::unique_ptr<Device>> devices;
  for (OpenedOpenCl& one : *opened) {
    CompletionSink* sink = sinks(devices.size(), one.info);
    devices.push_back(std::make_unique<OpenClDevice>(std::move(one), *sink));
  }
  return devices;
}

}  // namespace gpusched::device
