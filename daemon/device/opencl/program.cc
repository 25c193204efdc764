// The compiler's calls and its log, bounded.
#include "device/opencl/program.h"

#include <array>

#include "device/opencl/error.h"
#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

// The signatures are read from the compiler's own records of the source.
constexpr const char* kBuildOptions = "-cl-kernel-arg-info";
// A build log is for reading, and travels in a message.
constexpr std::size_t kLongestLog = 32 * 1024;

}  // namespace

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
                                   std::string_view prelude, std::string_view source) {
  const std::array<const char*, 2> texts{prelude.data(), source.data()};
  const std::array<std::size_t, 2> lengths{prelude.size(), source.size()};
  // A length of zero would mean "up to the terminator".
  const std::size_t skipped = prelude.empty() ? 1 : 0;
  cl_int error = CL_SUCCESS;
  ProgramHandle program(clCreateProgramWithSource(context, static_cast<cl_uint>(2 - skipped),
                                                  const_cast<const char**>(texts.data()) + skipped,
                                                  lengths.data() + skipped, &error));
  if (error != CL_SUCCESS) return ClFailure("taking the source", error);
  error = clBuildProgram(program.get(), 1, &device, kBuildOptions, nullptr, nullptr);
  if (error == CL_SUCCESS) return program;
  const std::string log = BuildLog(program.get(), device);
  return Status(StatusCode::kInvalidArgument, reason::kBuildFailed,
                "the source does not build (" + ClErrorName(error) + ")" +
                    (log.empty() ? "; its compiler says no more" : ":\n" + log));
}

void Warm(cl_program program) {
  std::size_t size = 0;
  clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr);
}

}  // namespace gpusched::device
