// Whether the device's one context still works, as every thread that calls CUDA sees it.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "device/cuda/error.h"

namespace gpusched::device {

class ContextHealth {
 public:
  // Every code a call returned goes through here. `what` tells where a sticky one was seen first.
  cudaError_t Seen(std::string_view what, cudaError_t error) {
    if (error == cudaSuccess || error == cudaErrorNotReady) return error;
    if (IsSticky(error)) {
      Break(what, error);
    } else {
      cudaGetLastError();  // so that no later call is taken for the one that failed
    }
    return error;
  }
  void Break(std::string_view what, cudaError_t error) {
    const std::lock_guard lock(mutex_);
    if (broken_.load(std::memory_order_relaxed)) return;
    first_ = CudaErrorName(error) + " while " + std::string(what);
    broken_.store(true, std::memory_order_release);
  }
  bool broken() const { return broken_.load(std::memory_order_acquire); }
  // "cudaErrorIllegalAddress (700) while loading a module"; once broken.
  std::string first() const {
    const std::lock_guard lock(mutex_);
    return first_;
  }

 private:
  std::atomic<bool> broken_{false};
  mutable std::mutex mutex_;  // guards the words between the executor and the preparing threads
  std::string first_;
};

}  // namespace gpusched::device
