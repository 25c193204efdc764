// Builds programs, lists their kernels, and measures types the compiler only names.
#include "device/opencl/opencl_module.h"

#include <algorithm>
#include <utility>

#include "device/opencl/cut_prelude.h"
#include "device/opencl/error.h"
#include "device/opencl/kernel_signature.h"
#include "device/opencl/program.h"
#include "device/opencl/source_scan.h"
#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

// Offsets are passed to the driver as they are, where the channel does not carry them.
constexpr std::uint64_t kEveryOffset = std::uint64_t{1} << 32;
// OpenCL's own bound on a kernel's parameters is 1,024 bytes; devices may take more.
constexpr std::uint64_t kLargestValue = 4'096;
constexpr const char* kSizesKernel = "gpusched_sizes_of_types";

Status BadModule(std::string message) {
  return Status(StatusCode::kInvalidArgument, reason::kBadModule, std::move(message));
}

struct NamedKernel {
  std::string name;
  KernelHandle kernel;
};

// PoCL has macros that rename its builtins, and with them a kernel that is named like one.
std::string NameInSource(std::string name, const SourceScan& scan) {
  constexpr std::string_view kRenamed = "_cl_";
  if (!name.starts_with(kRenamed) || scan.functions.contains(name)) return name;
  std::string written = name.substr(kRenamed.size());
  return scan.functions.contains(written) ? written : name;
}

Result<std::vector<NamedKernel>> KernelsByName(cl_program program, const SourceScan& scan) {
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
    kernels.push_back({NameInSource(std::move(name), scan), KernelHandle(kernel)});
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
  const Result<ProgramHandle> program = BuildProgram(context, device, "", source);
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

// The first line of a build log that says what is wrong.
std::string FirstError(const std::string& log) {
  const std::size_t at = log.find("error:");
  if (at == std::string::npos) return "the compiler refuses it";
  return log.substr(at, log.find('\n', at) - at);
}

// With the prelude if nothing speaks against it, else without; `whole` then says why.
Result<ProgramHandle> BuildEitherWay(cl_context context, cl_device_id device,
                                     const std::string& source, std::string& whole) {
  std::string refused;
  if (whole.empty()) {
    Result<ProgramHandle> program = BuildProgram(context, device, CutPrelude(), source);
    if (program) return program;
    refused = FirstError(program.status().message());
  }
  Result<ProgramHandle> program = BuildProgram(context, device, "", source);
  if (program && whole.empty()) {
    whole = "it does not build with the id functions renamed: " + refused;
  }
  return program;
}

}  // namespace

Result<OpenClModule> BuildModule(cl_context context, cl_device_id device, const std::string& source,
                                 const std::string& cannot_cut) {
  if (source.empty()) return BadModule("the source is empty");
  if (const std::size_t zero = source.find('\0'); zero != std::string::npos) {
    return BadModule("the source has a zero byte, at " + std::to_string(zero) +
                     " (counting from 0): compilers stop there; send it without");
  }
  const SourceScan scan = Scan(source);
  if (!scan.reads_file.empty()) {
    return BadModule("the source reads a file of the daemon's host, " + scan.reads_file +
                     ": send one text with everything in it, that asks for no other");
  }
  if (!scan.refused.empty()) return BadModule("the source is refused: " + scan.refused);
  std::string whole = cannot_cut.empty() ? scan.no_prelude : cannot_cut;
  OpenClModule module;
  Result<ProgramHandle> program = BuildEitherWay(context, device, source, whole);
  if (!program) return program.status();
  module.program = *std::move(program);
  module.runs_ranges = whole.empty();
  module.info.build_log = BuildLog(module.program.get(), device);
  Warm(module.program.get());
  Result<std::vector<NamedKernel>> kernels = KernelsByName(module.program.get(), scan);
  if (!kernels) return kernels.status();
  std::vector<std::vector<UnknownType>> unknown;
  for (NamedKernel& named : *kernels) {
    Result<KernelSignature> signature = ReadSignature(named.kernel.get(), device);
    if (!signature) {
      AddLine(module.info.build_log,
              "kernel '" + named.name + "' is left out: " + signature.status().message());
      continue;
    }
    KernelInfo& info = signature->info;
    info.name = named.name;
    info.whole_reason = whole.empty() ? scan.WaitOf(named.name) : whole;
    info.cuttable = info.whole_reason.empty();
    info.offset_limit = module.runs_ranges ? kOffsetLimit : kEveryOffset;
    module.info.kernels.push_back(std::move(info));
    module.kernels.push_back(std::move(named.kernel));
    unknown.push_back(std::move(signature->unknown));
  }
  if (module.kernels.empty()) {
    const std::string& log = module.info.build_log;
    return BadModule("the module has no kernel that a session could launch" +
                     (log.empty() ? "; give it a kernel void function" : "; " + log));
  }
  FillUnknownSizes(context, device, source, unknown, module.info);
  return module;
}

}  // namespace gpusched::device
