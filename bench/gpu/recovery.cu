// After a fault: how soon a new process computes, and how soon it has the old one's memory again.
//
// The parent never touches CUDA. It starts itself again in three parts: `fault` breaks its context,
// `export` gives an allocation away by descriptor before it does, `import` maps it at the same
// address and reads it.
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "check.cuh"
#include "figure.h"

namespace gpusched::gpu {
namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20;
constexpr std::uint64_t kAddress = std::uint64_t{1} << 42;  // asked for; the same in both
constexpr unsigned kPattern = 0x5EED5EED;

__global__ void Wild() { *reinterpret_cast<volatile unsigned*>(64) = 1; }
__global__ void Write(unsigned* at) { *at = kPattern; }
__global__ void Read(const unsigned* at, unsigned* seen) { *seen = *at; }

// A function of the driver, which is not linked.
void* Entry(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult state{};
  GPU_CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12'000, cudaEnableDefault, &state));
  if (found == nullptr) {
    std::fprintf(stderr, "the driver has no %s\n", name);
    std::exit(4);
  }
  return found;
}

// Calls it, and ends the program where it fails.
#define DRIVER_CALL(function, ...)                                                              \
  do {                                                                                          \
    const CUresult code = reinterpret_cast<decltype(&function)>(Entry(#function))(__VA_ARGS__); \
    if (code != CUDA_SUCCESS) {                                                                 \
      std::fprintf(stderr, "%s: CUresult %d\n", #function, static_cast<int>(code));             \
      std::exit(4);                                                                             \
    }                                                                                           \
  } while (false)

// The one message between the parts: a byte that carries a descriptor.
class DescriptorMessage {
 public:
  DescriptorMessage() {
    header_.msg_iov = &data_;
    header_.msg_iovlen = 1;
    header_.msg_control = control_;
    header_.msg_controllen = sizeof control_;
  }
  bool Send(int socket, int descriptor) {
    cmsghdr* const carried = CMSG_FIRSTHDR(&header_);
    carried->cmsg_level = SOL_SOCKET;
    carried->cmsg_type = SCM_RIGHTS;
    carried->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(carried), &descriptor, sizeof descriptor);
    return sendmsg(socket, &header_, 0) == 1;
  }
  // -1 where none came.
  int Receive(int socket) {
    int descriptor = -1;
    if (recvmsg(socket, &header_, 0) != 1) return descriptor;
    const cmsghdr* const carried = CMSG_FIRSTHDR(&header_);
    if (carried != nullptr) std::memcpy(&descriptor, CMSG_DATA(carried), sizeof descriptor);
    return descriptor;
  }

 private:
  char byte_ = 0;
  iovec data_{&byte_, 1};
  alignas(cmsghdr) char control_[CMSG_SPACE(sizeof(int))] = {};
  msghdr header_{};
};

// Breaks the context, as a client's kernel would.
[[noreturn]] void Fault() {
  Wild<<<1, 1>>>();
  _exit(cudaDeviceSynchronize() == cudaSuccess ? 1 : 0);
}

CUmemAllocationProp Properties() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 0;
  return properties;
}

void MapAtAddress(CUmemGenericAllocationHandle handle) {
  CUdeviceptr at = 0;
  DRIVER_CALL(cuMemAddressReserve, &at, kBytes, 0, kAddress, 0);
  if (at != kAddress) {
    std::fprintf(stderr, "the address is taken\n");
    std::exit(4);
  }
  DRIVER_CALL(cuMemMap, at, kBytes, 0, handle, 0);
  CUmemAccessDesc access{};
  access.location = Properties().location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  DRIVER_CALL(cuMemSetAccess, at, kBytes, &access, 1);
}

[[noreturn]] void Export(int socket) {
  GPU_CHECK(cudaFree(nullptr));
  const CUmemAllocationProp properties = Properties();
  CUmemGenericAllocationHandle handle = 0;
  DRIVER_CALL(cuMemCreate, &handle, kBytes, &properties, 0);
  int descriptor = -1;
  DRIVER_CALL(cuMemExportToShareableHandle, &descriptor, handle,
              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  MapAtAddress(handle);
  Write<<<1, 1>>>(reinterpret_cast<unsigned*>(kAddress));
  GPU_CHECK(cudaDeviceSynchronize());
  if (!DescriptorMessage().Send(socket, descriptor)) _exit(1);
  Fault();
}

[[noreturn]] void Import(int descriptor) {
  const auto begin = Clock::now();
  GPU_CHECK(cudaFree(nullptr));
  Print("recovery: context of the next process", MicrosecondsSince(begin) / 1e3, "ms");
  const auto import_begin = Clock::now();
  CUmemGenericAllocationHandle handle = 0;
  DRIVER_CALL(cuMemImportFromShareableHandle, &handle,
              reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  MapAtAddress(handle);
  Print("recovery: import and map 256 MiB at the same address",
        MicrosecondsSince(import_begin) / 1e3, "ms");
  unsigned *seen = nullptr, value = 0;
  GPU_CHECK(cudaMalloc(reinterpret_cast<void**>(&seen), sizeof *seen));
  Read<<<1, 1>>>(reinterpret_cast<const unsigned*>(kAddress), seen);
  GPU_CHECK(cudaMemcpy(&value, seen, sizeof value, cudaMemcpyDeviceToHost));
  Print("recovery: memory survives the fault of its maker", value == kPattern ? 1 : 0, "(1: yes)");
  std::exit(value == kPattern ? 0 : 1);
}

[[noreturn]] void Compute() {
  unsigned *at = nullptr, value = 0;
  GPU_CHECK(cudaMalloc(reinterpret_cast<void**>(&at), sizeof *at));
  Write<<<1, 1>>>(at);
  GPU_CHECK(cudaMemcpy(&value, at, sizeof value, cudaMemcpyDeviceToHost));
  std::exit(value == kPattern ? 0 : 1);
}

pid_t StartPart(const char* part, int descriptor) {
  const pid_t child = fork();
  if (child != 0) return child;
  const std::string number = std::to_string(descriptor);
  execl("/proc/self/exe", "recovery", part, number.c_str(), nullptr);
  _exit(127);
}

int EndOf(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

void MeasureNewProcess() {
  if (EndOf(StartPart("fault", -1)) != 0) {
    return PrintNotRun("recovery by a new process", "the fault did not come");
  }
  const auto begin = Clock::now();
  if (EndOf(StartPart("compute", -1)) != 0) {
    return PrintNotRun("recovery by a new process", "the next process cannot compute");
  }
  Print("recovery: fault to the next process's first result", MicrosecondsSince(begin) / 1e3, "ms");
}

void MeasureMemory() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
    return PrintNotRun("memory by descriptor", "no socket pair");
  }
  const pid_t maker = StartPart("export", ends[1]);
  close(ends[1]);
  const int descriptor = DescriptorMessage().Receive(ends[0]);
  EndOf(maker);
  if (descriptor < 0) return PrintNotRun("memory by descriptor", "it cannot be exported here");
  if (EndOf(StartPart("import", descriptor)) != 0) {
    PrintNotRun("memory by descriptor", "it cannot be imported, or was lost");
  }
}

}  // namespace
}  // namespace gpusched::gpu

int main(int argc, char** argv) {
  using namespace gpusched::gpu;
  if (argc == 3) {
    const std::string part = argv[1];
    const int descriptor = std::atoi(argv[2]);
    if (part == "fault") Fault();
    if (part == "compute") Compute();
    if (part == "export") Export(descriptor);
    if (part == "import") Import(descriptor);
  }
  MeasureNewProcess();
  MeasureMemory();
  return 0;
}
