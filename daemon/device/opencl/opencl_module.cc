// Builds programs, lists their kernels, and measures types the compiler only names.
#include "device/opencl/opencl_module.h"

#include <algorithm>
#include <utility>

#include "device/opencl/error.h"
#include "device/opencl/kernel_signature.h"
#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

// The signatures are read from the compiler's own records of the source.
constexpr const char* kBuildOptions = "-cl-kernel-arg-info";
// A build log is for reading, and travels in a message.
constexpr std::size_t kLongestLog = 32 * 1024;
// OpenCL's own bound on a kernel's parameters is 1,024 bytes; devices may take more.
constexpr std::uint64_t kLargestValue = 4'096;
constexpr const char* kSizesKernel = "gpusched_sizes_of_types";

Status BadModule(std::string message) {
  return Status(StatusCode::kInvalidArgument, reason::kBadModule, std::move(message));
}

std::string BuildLog(cl_program program, cl_device_id device) {
  std::size_t size = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size > 0)
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n' || log.back() == ' '))
    log.pop_back();
  if (log.size() > kLongestLog) {
    log.resize(kLongestLog);
    log += "\n(and more)";
  }
  return log;
}

Result<ProgramHandle> BuildProgram(cl_context context, cl_device_id device,
                                   const std::string& source) {
  const char* text = source.data();
  const std::size_t length = source.size();
  cl_int error = CL_SUCCESS;
  ProgramHandle program(clCreateProgramWithSource(context, 1, &text, &length, &error));
  if (error != CL_SUCCESS) return ClFailure("taking the source", error);
  error = clBuildProgram(program.get(), 1, &device, kBuildOptions, nullptr, nullptr);
  if (error == CL_SUCCESS) return program;
  const std::string log = BuildLog(program.get(), device);
  return Status(StatusCode::kInvalidArgument, reason::kBuildFailed,
                "the source does not build (" + ClErrorName(error) + "):\n" + log);
}

// Compiles what a launch will run, so that the first launch does not: PoCL leaves it for then.
void Warm(cl_program program) {
  std::size_t size = 0;
  clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr);
}

struct NamedKernel {
  std::string name;
  KernelHandle kernel;
};

Result<std::vector<NamedKernel>> KernelsByName(cl_program program) {
  cl_uint count = 0;
  cl_int error = clCreateKernelsInProgram(program, 0, nullptr, &count);
  if (error != CL_SUCCESS) return ClFailure("listing the module's kernels", error);
  std::vector<cl_kernel> raw(count);
  if (count > 0) error = clCreateKernelsInProgram(program, count, raw.data(), nullptr);
  if (error != CL_SUCCESS) return ClFailure("listing the module's kernels", error);
  std::vector<NamedKernel> kernels;
  for (const cl_kernel kernel : raw) {
    std::size_t size = 0;
    clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 0, nullptr, &size);
    std::string name(std::max<std::size_t>(size, 1), '\0');
    clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, size, name.data(), nullptr);
    name.resize(name.size() - 1);
    kernels.push_back({std::move(name), KernelHandle(kernel)});
  }
  std::sort(kernels.begin(), kernels.end(),
            [](const NamedKernel& a, const NamedKernel& b) { return a.name < b.name; });
  return kernels;
}

// Runs a kernel that writes the sizes of the types behind the source, and reads them back. Nothing
// if anything fails: the sizes then stay unknown.
std::vector<std::uint64_t> MeasureTypes(cl_context context, cl_device_id device, std::string source,
                                        const std::vector<std::string>& types) {
  source += "\nkernel void " + std::string(kSizesKernel) + "(global ulong *sizes) {\n";
  for (std::size_t i = 0; i < types.size(); ++i) {
    source += "  sizes[" + std::to_string(i) + "] = sizeof(" + types[i] + ");\n";
  }
  source += "}\n";
  const Result<ProgramHandle> program = BuildProgram(context, device, source);
  if (!program) return {};
  std::vector<std::uint64_t> sizes(types.size());
  const std::size_t bytes = sizes.size() * sizeof(std::uint64_t);
  const std::size_t one = 1;
  cl_int error = CL_SUCCESS;
  const KernelHandle kernel(clCreateKernel(program->get(), kSizesKernel, &error));
  const QueueHandle queue(clCreateCommandQueue(context, device, 0, &error));
  const MemoryHandle out(clCreateBuffer(context, CL_MEM_WRITE_ONLY, bytes, nullptr, &error));
  if (!kernel || !queue || !out) return {};
  cl_mem argument = out.get();
  if (clSetKernelArg(kernel.get(), 0, sizeof argument, &argument) != CL_SUCCESS ||
      clEnqueueNDRangeKernel(queue.get(), kernel.get(), 1, nullptr, &one, &one, 0, nullptr,
                             nullptr) != CL_SUCCESS ||
      clEnqueueReadBuffer(queue.get(), out.get(), CL_TRUE, 0, bytes, sizes.data(), 0, nullptr,
                          nullptr) != CL_SUCCESS) {
    return {};
  }
  return sizes;
}

void FillUnknownSizes(cl_context context, cl_device_id device, const std::string& source,
                      const std::vector<std::vector<UnknownType>>& unknown, ModuleInfo& info) {
  std::vector<std::string> types;
  for (const auto& of_kernel : unknown) {
    for (const UnknownType& type : of_kernel) types.push_back(type.name);
  }
  std::sort(types.begin(), types.end());
  types.erase(std::unique(types.begin(), types.end()), types.end());
  if (types.empty()) return;
  const std::vector<std::uint64_t> sizes = MeasureTypes(context, device, source, types);
  if (sizes.empty()) return;
  for (std::size_t kernel = 0; kernel < unknown.size(); ++kernel) {
    for (const UnknownType& type : unknown[kernel]) {
      const auto at = std::lower_bound(types.begin(), types.end(), type.name) - types.begin();
      if (sizes[at] > kLargestValue) continue;
      info.kernels[kernel].parameters[type.parameter].size = static_cast<std::uint32_t>(sizes[at]);
    }
  }
}

void AddLine(std::string& text, const std::string& line) {
  if (!text.empty()) text += "\n";
  text += line;
}

}  // namespace

Result<OpenClModule> BuildModule(cl_context context, cl_device_id device,
                                 const std::string& source) {
  if (source.empty()) return BadModule("the source is empty");
  OpenClModule module;
  Result<ProgramHandle> program = BuildProgram(context, device, source);
  if (!program) return program.status();
  module.program = *std::move(program);
  module.info.build_log = BuildLog(module.program.get(), device);
  Warm(module.program.get());
  Result<std::vector<NamedKernel>> kernels = KernelsByName(module.program.get());
  if (!kernels) return kernels.status();
  std::vector<std::vector<UnknownType>> unknown;
  for (NamedKernel& named : *kernels) {
    Result<KernelSignature> signature = ReadSignature(named.kernel.get(), device);
    if (!signature) {
      AddLine(module.info.build_log,
              "kernel '" + named.name + "' is left out: " + signature.status().message());
      continue;
    }
    signature->info.name = named.name;
    module.info.kernels.push_back(std::move(signature->info));
    module.kernels.push_back(std::move(named.kernel));
    unknown.push_back(std::move(signature->unknown));
  }
  if (module.kernels.empty()) {
    return BadModule("the module has no kernel that a session could launch; " +
                     module.info.build_log);
  }
  FillUnknownSizes(context, device, source, unknown, module.info);
  return module;
}

}  // namespace gpusched::device
