// Faults, contexts in error and the threads of streams.
#include "support/fake_cudart/runtime_state.h"

#include <algorithm>
#include <utility>

namespace gpusched::test {
namespace {

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

FakeDriver DefaultDriver() {
  return {.version = CUDART_VERSION,
          .stub = false,
          .gpus = {{.name = "stand-in 90",
                    .major = 9,
                    .minor = 0,
                    .multiprocessors = 4,
                    .most_blocks = 1,
                    .memory_bytes = std::size_t{256} << 20,
                    .vanished = false},
                   {.name = "stand-in 75",
                    .major = 7,
                    .minor = 5,
                    .multiprocessors = 2,
                    .most_blocks = 1,
                    .memory_bytes = std::size_t{128} << 20,
                    .vanished = false}}};
}

Runtime& runtime() {
  static Runtime* const all = new Runtime;  // never destroyed: threads of others may outlive main
  return *all;
}

void InstallDriver(FakeDriver driver) {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  all.driver = std::move(driver);
  all.Forget();
  all.allocations.clear();
  all.calls = 0;
  all.calls_of.clear();
  all.failing_call = 0;
  all.failing_functions.clear();
  all.launched = {};
  current_device = 0;
  last_error = cudaSuccess;
}

void Vanish(int device) {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  all.driver.gpus[static_cast<std::size_t>(device)].vanished = true;
}

void FailCall(std::uint64_t n, cudaError_t error) {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  all.failing_call = all.calls + n;
  all.failing_every = 0;
  all.call_error = error;
}

void FailEvery(std::uint64_t n, cudaError_t error) {
  FailCall(n, error);
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  all.failing_every = n;
}

void FailNext(const std::string& function, cudaError_t error, int others_first) {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  all.failing_functions[function] = {error, others_first};
}

void ForgetFailures() {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  all.failing_call = 0;
  all.failing_functions.clear();
}

std::uint64_t CallsOf(const std::string& function) {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  return all.calls_of[function];
}

void HoldStreams() {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  all.held = true;
}

void ReleaseStreams() {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  all.held = false;
  all.released.notify_all();
}

HeldKernel::HeldKernel(const std::string& name) {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  all.held_kernel = name;
}
HeldKernel::~HeldKernel() {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  all.held_kernel.clear();
  all.released.notify_all();
}

LiveObjects StillAlive() {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  LiveObjects alive{.streams = all.streams,
                    .events = all.events,
                    .libraries = all.libraries.size(),
                    .allocations = all.allocations.size(),
                    .pinned = all.pinned.size()};
  for (const std::size_t bytes : all.used_bytes) alive.device_bytes += bytes;
  return alive;
}

LaunchTally Launched() {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  return all.launched;
}

bool IsSticky(cudaError_t error) {
  switch (static_cast<int>(error)) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorAssert:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak: return true;
    default: return false;
  }
}

void Break(int device, cudaError_t error) {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  auto& broken = all.broken[static_cast<std::size_t>(device)];
  if (broken == cudaSuccess) broken = error;
}

cudaError_t Answer(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

int CurrentDevice() { return current_device; }

cudaError_t Enter(const char* function, int device) {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  ++all.calls;
  ++all.calls_of[function];
  if (all.driver.version == 0) return cudaErrorInsufficientDriver;
  if (all.driver.stub) return cudaErrorStubLibrary;
  if (all.driver.gpus.empty()) return cudaErrorNoDevice;
  const auto index = static_cast<std::size_t>(device);
  if (index >= all.driver.gpus.size()) return cudaErrorInvalidDevice;
  cudaError_t error = cudaSuccess;
  if (all.calls == all.failing_call) {
    error = all.call_error;
    if (all.failing_every != 0) all.failing_call += all.failing_every;
  }
  if (const auto named = all.failing_functions.find(function);
      named != all.failing_functions.end() && named->second.others_first-- == 0) {
    error = named->second.error;
    all.failing_functions.erase(named);
  }
  if (error != cudaSuccess) {
    if (IsSticky(error) && all.broken[index] == cudaSuccess) all.broken[index] = error;
    return error;
  }
  if (all.driver.gpus[index].vanished) return cudaErrorDevicesUnavailable;
  return all.broken[index];
}

}  // namespace gpusched::test

using gpusched::test::Answer;
using gpusched::test::Enter;
using gpusched::test::Runtime;
using gpusched::test::runtime;

CUstream_st::CUstream_st(int device_index, int stream_priority)
    : device(device_index), priority(stream_priority), thread_([this] { Run(); }) {}

CUstream_st::~CUstream_st() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CUstream_st::Append(Operation operation) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(operation));
  }
  changed_.notify_all();
}

void CUstream_st::Drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !running_; });
}

bool CUstream_st::idle() {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && !running_;
}

void CUstream_st::Run() {
  Runtime& all = runtime();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty() || closing_; });
    if (waiting_.empty()) return;
    Operation operation = std::move(waiting_.front());
    waiting_.pop_front();
    running_ = true;
    lock.unlock();
    bool broken = false;
    {
      std::unique_lock released(all.mutex);
      all.released.wait(released, [&all] { return !all.held; });
      broken = all.broken[static_cast<std::size_t>(device)] != cudaSuccess;
    }
    // A context in error executes nothing more.
    const cudaError_t error = broken ? cudaSuccess : operation();
    operation = nullptr;
    if (error != cudaSuccess) gpusched::test::Break(device, error);
    lock.lock();
    running_ = false;
    changed_.notify_all();
  }
}

cudaError_t cudaGetLastError() { return std::exchange(gpusched::test::last_error, cudaSuccess); }

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = Enter(__func__, device); error != cudaSuccess) return Answer(error);
  gpusched::test::current_device = device;
  return cudaSuccess;
}
