// What a CUDA error code means for the device, and the Status a failed call becomes.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "gpusched/status.h"

namespace gpusched::device {

// "cudaErrorIllegalAddress (700)".
std::string CudaErrorName(cudaError_t error);

// The context is in error for good: only a new process gets another.
bool IsSticky(cudaError_t error);

// There is no device to be had here, as opposed to one that does not work.
bool MeansNoGpu(cudaError_t error);

// RESOURCE_EXHAUSTED (DEVICE_MEMORY) without memory, else INTERNAL (DEVICE_FAILED): "<what> failed
// with <name>; <advice, where the code has one>".
Status CudaFailure(std::string_view what, cudaError_t error);

}  // namespace gpusched::device
