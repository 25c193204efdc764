// Owning handles of OpenCL objects: each is released once, in the order its owner goes.
#pragma once

#include <CL/cl.h>

#include <memory>

namespace gpusched::device {

template <auto kRelease>
struct Release {
  template <typename T>
  void operator()(T* object) const {
    kRelease(object);
  }
};

using ContextHandle = std::unique_ptr<_cl_context, Release<&clReleaseContext>>;
using QueueHandle = std::unique_ptr<_cl_command_queue, Release<&clReleaseCommandQueue>>;
using ProgramHandle = std::unique_ptr<_cl_program, Release<&clReleaseProgram>>;
using KernelHandle = std::unique_ptr<_cl_kernel, Release<&clReleaseKernel>>;
using MemoryHandle = std::unique_ptr<_cl_mem, Release<&clReleaseMemObject>>;
using DeviceHandle = std::unique_ptr<_cl_device_id, Release<&clReleaseDevice>>;
using EventHandle = std::unique_ptr<_cl_event, Release<&clReleaseEvent>>;

}  // namespace gpusched::device
