// What the stand-in runtime keeps: devices, streams, events, memory, loaded libraries, faults.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/fake_cudart/block_turn.h"
#include "support/fake_cudart/fake_cudart.h"
#include "support/fake_cudart/ptx_interpreter.h"

// The runtime's handles are pointers to these, which it declares and nobody defines.
struct CUevent_st {
  // Guarded by the runtime's mutex. A stream may still pass it when the event is gone.
  struct Mark {
    std::uint64_t recorded = 0, reached = 0;  // the last record and the last that was passed
    std::chrono::steady_clock::time_point time;
  };
  int device = 0;
  std::shared_ptr<Mark> mark = std::make_shared<Mark>();
};

struct CUstream_st {
  CUstream_st(int device_index, int stream_priority);
  ~CUstream_st();  // runs what was given to it, then joins

  using Operation = std::function<cudaError_t()>;  // an error breaks the context
  void Append(Operation operation);
  void Drain();
  bool idle();

  const int device, priority;

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Operation> waiting_;
  bool running_ = false, closing_ = false;
  std::thread thread_;
};

namespace gpusched::test {

struct FakeKernel {
  std::string name;
  std::vector<std::uint32_t> offsets, sizes;
  std::uint32_t parameter_bytes = 0;
  int max_threads = 1'024;
  std::size_t static_shared = 0;
  int dynamic_limit = 48 * 1'024;
  class FakeLibrary* library = nullptr;
};

class FakeLibrary {
 public:
  std::unique_ptr<PtxProgram> program;  // none: a cubin, which cannot be executed here
  std::vector<std::unique_ptr<FakeKernel>> kernels;
  // One launch at a time: the program's variables are its own.
  std::mutex mutex;
};

// Device memory is host memory of its own: what lies beside it belongs to nobody.
struct Allocation {
  explicit Allocation(std::size_t count) : bytes(new std::byte[count]), size(count) {}
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size;
  int device = 0;
};

struct Runtime {
  std::mutex mutex;
  FakeDriver driver = DefaultDriver();
  std::vector<cudaError_t> broken;  // by device: the error its context is in
  std::vector<std::size_t> used_bytes;
  std::vector<std::shared_ptr<BlockTurn>> turns;                      // by device
  std::map<std::uintptr_t, std::shared_ptr<Allocation>> allocations;  // by address
  struct Pinned {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  std::map<std::uintptr_t, Pinned> pinned;  // by address
  std::size_t streams = 0, events = 0;
  std::map<FakeLibrary*, std::shared_ptr<FakeLibrary>> libraries;
  LaunchTally launched;

  std::uint64_t calls = 0;
  std::map<std::string, std::uint64_t> calls_of;  // by function
  std::uint64_t failing_call = 0;                 // 0: none
  std::uint64_t failing_every = 0;                // then every so many calls; 0: no more
  cudaError_t call_error = cudaSuccess;
  struct Failing {
    cudaError_t error = cudaSuccess;
    int others_first = 0;
  };
  std::map<std::string, Failing> failing_functions;

  bool held = false;
  std::string held_kernel;
  std::condition_variable released;

  Runtime() { Forget(); }
  void Forget() {
    broken.assign(driver.gpus.size(), cudaSuccess);
    used_bytes.assign(driver.gpus.size(), 0);
    turns.clear();
    for (std::size_t i = 0; i < driver.gpus.size(); ++i) {
      turns.push_back(std::make_shared<BlockTurn>());
    }
  }
};

Runtime& runtime();

// What every call begins with: cudaSuccess, or what it is to answer. For the current device, or the
// one named.
cudaError_t Enter(const char* function, int device);
int CurrentDevice();
// Remembers an error for cudaGetLastError.
cudaError_t Answer(cudaError_t error);
// A call that is answered at once: `call` says what, with the runtime locked.
template <typename Call>
cudaError_t AtOnce(const char* function, int device, Call call) {
  if (const cudaError_t error = Enter(function, device); error != cudaSuccess) return Answer(error);
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  return Answer(call(all));
}
// One that gives something back: it does so even where it answers an error.
template <typename Call>
cudaError_t InAnyCase(const char* function, int device, Call call) {
  const cudaError_t error = Enter(function, device);
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  call(all);
  return Answer(error);
}
// What the driver tells of a device.
cudaDeviceProp PropertiesOf(const FakeGpu& gpu, int device);
bool IsSticky(cudaError_t error);
// The context of `device` is in error from now on.
void Break(int device, cudaError_t error);

}  // namespace gpusched::test
