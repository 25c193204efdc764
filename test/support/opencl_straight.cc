// The plain calls, each checked.
#include "support/opencl_straight.h"

#include <CL/cl.h>

#include <array>
#include <map>
#include <utility>

#include "device/opencl/handle.h"

namespace gpusched::test {
namespace {

using device::ContextHandle;
using device::KernelHandle;
using device::MemoryHandle;
using device::ProgramHandle;
using device::QueueHandle;

Status Checked(const std::string& what, cl_int error) {
  if (error == CL_SUCCESS) return Status::Ok();
  return Status(StatusCode::kInternal, "OPENCL_FAILED",
                what + ": OpenCL error " + std::to_string(error));
}

std::string NameOf(cl_device_id device) {
  std::array<char, 256> name{};
  clGetDeviceInfo(device, CL_DEVICE_NAME, name.size() - 1, name.data(), nullptr);
  return name.data();
}

cl_device_id FindDevice(const std::string& wanted) {
  std::array<cl_platform_id, 16> platforms{};
  cl_uint count = 0;
  if (clGetPlatformIDs(platforms.size(), platforms.data(), &count) != CL_SUCCESS) return nullptr;
  for (cl_uint i = 0; i < count && i < platforms.size(); ++i) {
    std::array<cl_device_id, 16> devices{};
    cl_uint found = 0;
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, devices.size(), devices.data(), &found) !=
        CL_SUCCESS) {
      continue;
    }
    for (cl_uint j = 0; j < found && j < devices.size(); ++j) {
      if (wanted.empty() || NameOf(devices[j]) == wanted) return devices[j];
    }
  }
  return nullptr;
}

class Straight final : public StraightOpenCl {
 public:
  Straight(cl_device_id device, ContextHandle context, QueueHandle queue)
      : device_(device), context_(std::move(context)), queue_(std::move(queue)) {}

  Status Build(const std::string& source, const std::string& options) override {
    kernels_.clear();
    const char* text = source.c_str();
    cl_int error = CL_SUCCESS;
    program_.reset(clCreateProgramWithSource(context_.get(), 1, &text, nullptr, &error));
    if (error != CL_SUCCESS) return Checked("taking the source", error);
    return Checked("building",
                   clBuildProgram(program_.get(), 1, &device_, options.c_str(), nullptr, nullptr));
  }
  Result<std::size_t> Allocate(std::uint64_t bytes) override {
    cl_int error = CL_SUCCESS;
    buffers_.emplace_back(
        clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, bytes, nullptr, &error));
    if (error != CL_SUCCESS) return Checked("allocating", error);
    return buffers_.size() - 1;
  }
  void FreeAll() override { buffers_.clear(); }
  Status Write(std::size_t buffer, const void* from, std::uint64_t bytes) override {
    return Checked("writing", clEnqueueWriteBuffer(queue_.get(), buffers_[buffer].get(), CL_TRUE, 0,
                                                   bytes, from, 0, nullptr, nullptr));
  }
  Status Read(std::size_t buffer, void* to, std::uint64_t bytes) override {
    return Checked("reading", clEnqueueReadBuffer(queue_.get(), buffers_[buffer].get(), CL_TRUE, 0,
                                                  bytes, to, 0, nullptr, nullptr));
  }
  Status Enqueue(const StraightLaunch& launch) override {
    const Result<cl_kernel> kernel = Find(launch.kernel);
    if (!kernel) return kernel.status();
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      Status status = Checked("argument " + std::to_string(i),
                              Set(*kernel, static_cast<cl_uint>(i), launch.arguments[i]));
      if (!status.ok()) return status;
    }
    const auto data = [](const std::vector<std::size_t>& sizes) {
      return sizes.empty() ? nullptr : sizes.data();
    };
    return Checked(
        "launching " + launch.kernel,
        clEnqueueNDRangeKernel(queue_.get(), *kernel, static_cast<cl_uint>(launch.global.size()),
                               data(launch.offset), data(launch.global), data(launch.local), 0,
                               nullptr, nullptr));
  }
  Result<std::size_t> Mark() override {
    cl_event event = nullptr;
    Status status =
        Checked("marking", clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &event));
    if (!status.ok()) return status;
    marks_[++last_mark_].reset(event);
    status = Checked("flushing", clFlush(queue_.get()));
    if (!status.ok()) return status;
    return last_mark_;
  }
  Status Await(std::size_t mark) override {
    const device::EventHandle event = std::move(marks_[mark]);
    marks_.erase(mark);
    cl_event raw = event.get();
    return Checked("waiting", clWaitForEvents(1, &raw));
  }
  Status Finish() override { return Checked("finishing", clFinish(queue_.get())); }
  Result<std::vector<std::size_t>> RequiredLocal(const std::string& name) override {
    const Result<cl_kernel> kernel = Find(name);
    if (!kernel) return kernel.status();
    std::vector<std::size_t> local(3);
    clGetKernelWorkGroupInfo(*kernel, device_, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                             3 * sizeof(std::size_t), local.data(), nullptr);
    return local;
  }

 private:
  Result<cl_kernel> Find(const std::string& name) {
    KernelHandle& kernel = kernels_[name];
    cl_int error = CL_SUCCESS;
    if (!kernel) kernel.reset(clCreateKernel(program_.get(), name.c_str(), &error));
    if (error != CL_SUCCESS) return Checked("kernel " + name, error);
    return kernel.get();
  }
  cl_int Set(cl_kernel kernel, cl_uint index, const StraightArgument& argument) {
    switch (argument.kind) {
      case StraightArgument::Kind::kBuffer: {
        cl_mem memory = buffers_[argument.buffer].get();
        return clSetKernelArg(kernel, index, sizeof memory, &memory);
      }
      case StraightArgument::Kind::kValue:
        return clSetKernelArg(kernel, index, argument.value.size(), argument.value.data());
      case StraightArgument::Kind::kLocal:
        return clSetKernelArg(kernel, index, argument.local_bytes, nullptr);
    }
    return CL_INVALID_ARG_VALUE;
  }

  const cl_device_id device_;
  const ContextHandle context_;
  const QueueHandle queue_;
  ProgramHandle program_;
  std::map<std::string, KernelHandle> kernels_;
  std::vector<MemoryHandle> buffers_;
  std::map<std::size_t, device::EventHandle> marks_;
  std::size_t last_mark_ = 0;
};

}  // namespace

Result<std::unique_ptr<StraightOpenCl>> StraightOpenCl::Open(const std::string& device_name) {
  const cl_device_id device = FindDevice(device_name);
  if (device == nullptr) {
    return Status(StatusCode::kNotFound, "NO_OPENCL",
                  "no OpenCL device; apt-get install pocl-opencl-icd");
  }
  cl_int error = CL_SUCCESS;
  ContextHandle context(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error));
  if (error != CL_SUCCESS) return Checked("making a context", error);
  QueueHandle queue(clCreateCommandQueue(context.get(), device, 0, &error));
  if (error != CL_SUCCESS) return Checked("making a queue", error);
  return std::unique_ptr<StraightOpenCl>(
      new Straight(device, std::move(context), std::move(queue)));
}

}  // namespace gpusched::test
