// The stand-in's answers about driver, devices and errors.
#include <algorithm>
#include <cstring>

#include "support/fake_cudart/runtime_state.h"

using namespace gpusched::test;  // NOLINT: the functions below stand in no namespace

cudaError_t cudaDriverGetVersion(int* version) {
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  *version = all.driver.stub ? 0 : all.driver.version;  // succeeds all the same
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (const cudaError_t error = Enter(__func__, 0); error != cudaSuccess) {
    // A broken or vanished device is counted all the same.
    if (error != cudaErrorDevicesUnavailable && !IsSticky(error)) return Answer(error);
  }
  Runtime& all = runtime();
  const std::lock_guard lock(all.mutex);
  *count = static_cast<int>(all.driver.gpus.size());
  return cudaSuccess;
}

cudaDeviceProp gpusched::test::PropertiesOf(const FakeGpu& gpu, int device) {
  cudaDeviceProp told{};
  std::strncpy(told.name, gpu.name.c_str(), sizeof told.name - 1);
  for (int i = 0; i < 16; ++i) told.uuid.bytes[i] = static_cast<char>(i * 7 + device);
  told.totalGlobalMem = gpu.memory_bytes;
  told.sharedMemPerBlock = 48 * 1'024;
  told.sharedMemPerBlockOptin = gpu.major >= 9 ? 227 * 1'024 : 64 * 1'024;
  told.sharedMemPerMultiprocessor = gpu.major >= 9 ? 228 * 1'024 : 64 * 1'024;
  told.reservedSharedMemPerBlock = gpu.major >= 8 ? 1'024 : 0;
  told.warpSize = 32;
  told.maxThreadsPerBlock = 1'024;
  told.maxThreadsPerMultiProcessor = gpu.major >= 8 ? 2'048 : 1'024;
  told.maxBlocksPerMultiProcessor = gpu.most_blocks;
  const int block[3] = {1'024, 1'024, 64}, grid[3] = {2'147'483'647, 65'535, 65'535};
  std::copy_n(block, 3, told.maxThreadsDim);
  std::copy_n(grid, 3, told.maxGridSize);
  told.major = gpu.major;
  told.minor = gpu.minor;
  told.multiProcessorCount = gpu.multiprocessors;
  told.memoryPoolsSupported = 1;
  told.streamPrioritiesSupported = 1;
  return told;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return AtOnce(__func__, device, [=](Runtime& all) {
    *properties = PropertiesOf(all.driver.gpus[static_cast<std::size_t>(device)], device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return AtOnce(__func__, CurrentDevice(), [=](Runtime&) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (static_cast<int>(error)) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError: return "cudaErrorInitializationError";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorStubLibrary: return "cudaErrorStubLibrary";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorDevicesUnavailable: return "cudaErrorDevicesUnavailable";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorNoKernelImageForDevice: return "cudaErrorNoKernelImageForDevice";
    case cudaErrorInvalidPtx: return "cudaErrorInvalidPtx";
    case cudaErrorECCUncorrectable: return "cudaErrorECCUncorrectable";
    case cudaErrorNvlinkUncorrectable: return "cudaErrorNvlinkUncorrectable";
    case cudaErrorUnsupportedPtxVersion: return "cudaErrorUnsupportedPtxVersion";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorSymbolNotFound: return "cudaErrorSymbolNotFound";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchOutOfResources: return "cudaErrorLaunchOutOfResources";
    case cudaErrorLaunchTimeout: return "cudaErrorLaunchTimeout";
    case cudaErrorIllegalInstruction: return "cudaErrorIllegalInstruction";
    case cudaErrorMisalignedAddress: return "cudaErrorMisalignedAddress";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
    case cudaErrorUnknown: return "cudaErrorUnknown";
    default: return "unrecognized error code";
  }
}

const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
