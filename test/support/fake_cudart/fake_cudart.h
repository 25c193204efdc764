// What a test may ask of the stand-in for the CUDA runtime: which devices there are, what fails.
//
// The stand-in is linked in place of cudart and has the functions that the CUDA device uses, with
// the signatures of cuda_runtime_api.h. Work runs on a thread per stream, on the CPU: PTX through
// the interpreter, so that what the backend loads really computes. A device executes one block at a
// time, of the stream with the highest priority. Unless told otherwise there are two devices and a
// driver as new as the toolkit.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpusched::test {

struct FakeGpu {
  std::string name = "stand-in 90";
  int major = 9, minor = 0;
  int multiprocessors = 4;
  // Side by side on one multiprocessor. In truth they run one after the other here, so that a
  // scheduler that was told more would wait longer for a wave than for a block.
  int most_blocks = 1;
  std::size_t memory_bytes = std::size_t{256} << 20;
  bool vanished = false;  // it is counted, and every call for it fails
};

struct FakeDriver {
  // 0: none is installed; else as cudaDriverGetVersion tells it.
  int version = CUDART_VERSION;
  bool stub = false;  // the toolkit's library that only serves to link
  std::vector<FakeGpu> gpus;
};

// Two devices that differ in everything a backend may ask.
FakeDriver DefaultDriver();

// Starts over: forgets faults, memory and devices. Nothing of the runtime may be in use.
void InstallDriver(FakeDriver driver);

// From now on every call for that device fails.
void Vanish(int device);

// The `n`-th call from now on, counted from 1, fails with `error` and does nothing; a sticky one
// also breaks the context it was made for.
void FailCall(std::uint64_t n, cudaError_t error);
// The next call of this function fails, or one after so many others.
void FailNext(const std::string& function, cudaError_t error, int others_first = 0);
// Every `n`-th call from now on fails.
void FailEvery(std::uint64_t n, cudaError_t error);
// Forgets what was to fail and did not.
void ForgetFailures();
// Calls of this function since InstallDriver.
std::uint64_t CallsOf(const std::string& function);

// Streams start nothing more until released; what executes goes on.
void HoldStreams();
void ReleaseStreams();
// While one lives, streams are held.
class HeldStreams {
 public:
  HeldStreams() { HoldStreams(); }
  ~HeldStreams() { ReleaseStreams(); }
  HeldStreams(const HeldStreams&) = delete;
  HeldStreams& operator=(const HeldStreams&) = delete;
};

// While one lives, kernels of that name begin nothing; what comes behind one on its stream waits.
class HeldKernel {
 public:
  explicit HeldKernel(const std::string& name);
  ~HeldKernel();
  HeldKernel(const HeldKernel&) = delete;
  HeldKernel& operator=(const HeldKernel&) = delete;
};

// What was made and not given back.
struct LiveObjects {
  std::size_t streams = 0, events = 0, libraries = 0, allocations = 0, pinned = 0;
  std::size_t device_bytes = 0;
};
LiveObjects StillAlive();

// Kernel launches so far, and the largest grid among them.
struct LaunchTally {
  std::uint64_t launches = 0;
  std::uint64_t blocks = 0;
};
LaunchTally Launched();

}  // namespace gpusched::test
