// Owning handles of CUDA objects: each is given back once, on a thread that has set the device.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <type_traits>

namespace gpusched::device {

template <auto kRelease>
struct CudaRelease {
  template <typename T>
  void operator()(T* object) const {
    kRelease(object);
  }
};

template <typename Handle, auto kRelease>
using CudaHandle = std::unique_ptr<std::remove_pointer_t<Handle>, CudaRelease<kRelease>>;

using StreamHandle = CudaHandle<cudaStream_t, &cudaStreamDestroy>;
using CudaEventHandle = CudaHandle<cudaEvent_t, &cudaEventDestroy>;
using LibraryHandle = CudaHandle<cudaLibrary_t, &cudaLibraryUnload>;
using PinnedHandle = std::unique_ptr<std::byte, CudaRelease<&cudaFreeHost>>;

// Memory of the device, given back in the order of its stream.
struct FreeInStream {
  cudaStream_t stream = nullptr;
  void operator()(std::byte* memory) const { cudaFreeAsync(memory, stream); }
};
using DeviceMemory = std::unique_ptr<std::byte, FreeInStream>;

}  // namespace gpusched::device
