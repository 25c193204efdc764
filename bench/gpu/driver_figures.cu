// What the driver itself costs: context, launches, copies, pinning, and streams that share a GPU.
#include <cuda_runtime.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "check.cuh"
#include "figure.h"

namespace gpusched::gpu {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{256} << 20;
constexpr int kRepeats = 5, kLaunches = 20'000, kArrivals = 200;

__global__ void Nothing() {}
__global__ void Spin(unsigned* out, unsigned rounds) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value = i;
  for (unsigned round = 0; round < rounds; ++round) value = value * 5 + 3;
  out[i] = value;
}

void MeasureContext() {
  const auto begin = Clock::now();
  GPU_CHECK(cudaFree(nullptr));
  Print("context: time to make it", MicrosecondsSince(begin) / 1e3, "ms");
  std::size_t free = 0, total = 0;
  GPU_CHECK(cudaMemGetInfo(&free, &total));
  Print("context: memory gone with it", static_cast<double>(total - free) / (1 << 20), "MiB");
}

void MeasureLaunches() {
  Nothing<<<1, 32>>>();
  GPU_CHECK(cudaDeviceSynchronize());
  const auto begin = Clock::now();
  for (int i = 0; i < kLaunches; ++i) Nothing<<<1, 32>>>();
  GPU_CHECK(cudaDeviceSynchronize());
  Print("launch gap: empty kernels back to back", MicrosecondsSince(begin) / kLaunches, "us");
  std::vector<double> alone;
  for (int i = 0; i < 500; ++i) {
    const auto each = Clock::now();
    Nothing<<<1, 32>>>();
    GPU_CHECK(cudaDeviceSynchronize());
    alone.push_back(MicrosecondsSince(each));
  }
  Print("launch and wait, alone, p50", Quantile(alone, 0.5), "us");
}

void MeasureCopies(const char* what, void* host) {
  void* device = nullptr;
  GPU_CHECK(cudaMalloc(&device, kCopyBytes));
  for (const bool in : {true, false}) {
    std::vector<double> rates;
    for (int i = 0; i < kRepeats; ++i) {
      const auto begin = Clock::now();
      GPU_CHECK(in ? cudaMemcpy(device, host, kCopyBytes, cudaMemcpyHostToDevice)
                   : cudaMemcpy(host, device, kCopyBytes, cudaMemcpyDeviceToHost));
      rates.push_back(static_cast<double>(kCopyBytes) / MicrosecondsSince(begin) / 1e3);
    }
    Print(std::string("copy ") + (in ? "in" : "out") + ", " + what, Quantile(rates, 0.5), "GB/s");
  }
  GPU_CHECK(cudaFree(device));
}

void MeasureMemory() {
  void* pinned = nullptr;
  GPU_CHECK(cudaHostAlloc(&pinned, kCopyBytes, cudaHostAllocDefault));
  std::memset(pinned, 1, kCopyBytes);
  MeasureCopies("pinned", pinned);
  GPU_CHECK(cudaFreeHost(pinned));
  std::vector<std::byte> pageable(kCopyBytes, std::byte{1});
  MeasureCopies("pageable", pageable.data());

  const int arena = memfd_create("gpusched-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (arena < 0 || ftruncate(arena, kCopyBytes) != 0) {
    return PrintNotRun("memfd pinning", "no memfd");
  }
  void* const mapped =
      mmap(nullptr, kCopyBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, arena, 0);
  const auto begin = Clock::now();
  const cudaError_t registered = cudaHostRegister(mapped, kCopyBytes, cudaHostRegisterDefault);
  if (registered != cudaSuccess) {
    PrintNotRun("memfd pinning", cudaGetErrorName(registered));
    cudaGetLastError();
  } else {
    Print("memfd pinning: time for 1 GiB",
          MicrosecondsSince(begin) / 1e3 * (1 << 30) / kCopyBytes, "ms");
    MeasureCopies("memfd", mapped);
    GPU_CHECK(cudaHostUnregister(mapped));
  }
  munmap(mapped, kCopyBytes);
  close(arena);
}

// A kernel that fills the GPU for about so long, whatever the GPU.
struct Sized {
  unsigned blocks = 0, rounds = 0;
};

class Rivals {
 public:
  Rivals() {
    cudaDeviceProp properties{};
    GPU_CHECK(cudaGetDeviceProperties(&properties, 0));
    multiprocessors_ = static_cast<unsigned>(properties.multiProcessorCount);
    GPU_CHECK(cudaMalloc(&out_, sizeof(unsigned) * kThreads * multiprocessors_ * kWaves * kPerMp));
    const Sized probe{.blocks = multiprocessors_ * kPerMp, .rounds = 100'000};
    Time(probe);
    rounds_per_us_ = probe.rounds / Time(probe);
  }
  ~Rivals() { cudaFree(out_); }

  // Waits of a kernel of `us` beside an endless other one, by the two streams they run in.
  void Measure(const char* mode, cudaStream_t low, cudaStream_t high, double us) {
    const Sized small{.blocks = multiprocessors_ * kPerMp,
                      .rounds = static_cast<unsigned>(us * rounds_per_us_)};
    // Best effort: waves of 100 us, so many that one launch takes 10 ms.
    const Sized large{.blocks = multiprocessors_ * kPerMp * kWaves,
                      .rounds = static_cast<unsigned>(100 * rounds_per_us_)};
    const double alone = Time(small);
    cudaEvent_t done;
    GPU_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    std::mt19937 random(1);
    std::vector<double> waits;
    std::vector<cudaEvent_t> running(2);
    for (auto& event : running) {
      GPU_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
      Launch(large, low);
      GPU_CHECK(cudaEventRecord(event, low));
    }
    std::size_t oldest = 0;
    const int arrivals = us > 1'000 ? kArrivals / 4 : kArrivals;
    for (int i = 0; i < arrivals; ++i) {
      const auto due = Clock::now() + std::chrono::microseconds(500 + random() % 5'000);
      while (Clock::now() < due) oldest = KeepBusy(large, low, running, oldest);
      const auto begin = Clock::now();
      Launch(small, high);
      GPU_CHECK(cudaEventRecord(done, high));
      while (cudaEventQuery(done) == cudaErrorNotReady) {
        oldest = KeepBusy(large, low, running, oldest);
      }
      waits.push_back(MicrosecondsSince(begin) - alone);
    }
    GPU_CHECK(cudaDeviceSynchronize());
    const std::string name =
        std::string("wait beside best effort, ") + mode + ", kernel of " + Microseconds(us);
    Print(name + ", p50", Quantile(waits, 0.5), "us");
    Print(name + ", p99", Quantile(waits, 0.99), "us");
    for (auto& event : running) cudaEventDestroy(event);
    cudaEventDestroy(done);
  }

 private:
  static constexpr unsigned kThreads = 256, kPerMp = 4, kWaves = 100;

  static std::string Microseconds(double us) { return std::to_string(static_cast<int>(us)) + " us"; }
  void Launch(const Sized& kernel, cudaStream_t stream) {
    Spin<<<kernel.blocks, kThreads, 0, stream>>>(out_, kernel.rounds);
    GPU_CHECK(cudaGetLastError());
  }
  std::size_t KeepBusy(const Sized& large, cudaStream_t low, std::vector<cudaEvent_t>& running,
                       std::size_t oldest) {
    if (cudaEventQuery(running[oldest]) == cudaErrorNotReady) return oldest;
    Launch(large, low);
    GPU_CHECK(cudaEventRecord(running[oldest], low));
    return 1 - oldest;
  }
  double Time(const Sized& kernel) {
    GPU_CHECK(cudaDeviceSynchronize());
    const auto begin = Clock::now();
    Launch(kernel, nullptr);
    GPU_CHECK(cudaDeviceSynchronize());
    return MicrosecondsSince(begin);
  }

  unsigned multiprocessors_ = 1;
  unsigned* out_ = nullptr;
  double rounds_per_us_ = 1;
};

void MeasureRivals() {
  int least = 0, greatest = 0;
  GPU_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t one, low, high, other;
  GPU_CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  GPU_CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  GPU_CHECK(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least));
  GPU_CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
  Rivals rivals;
  for (const double us : {20.0, 100.0, 1'000.0, 10'000.0}) {
    rivals.Measure("whole", one, one, us);
    rivals.Measure("default streams", one, other, us);
    rivals.Measure("priority streams", low, high, us);
  }
}

}  // namespace
}  // namespace gpusched::gpu

int main() {
  gpusched::gpu::MeasureContext();
  gpusched::gpu::MeasureLaunches();
  gpusched::gpu::MeasureMemory();
  gpusched::gpu::MeasureRivals();
  return 0;
}
