// The names of OpenCL 1.2's error codes, with advice where a client can do something.
#include "device/opencl/error.h"

#include <array>

#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

struct Error {
  cl_int code;
  std::string_view name;
  std::string_view advice;
};

#define GPUSCHED_CL_ERROR(code) code, #code
constexpr std::array kErrors{
    Error{GPUSCHED_CL_ERROR(CL_DEVICE_NOT_AVAILABLE), ""},
    Error{GPUSCHED_CL_ERROR(CL_COMPILER_NOT_AVAILABLE), ""},
    Error{GPUSCHED_CL_ERROR(CL_MEM_OBJECT_ALLOCATION_FAILURE), "the device is out of memory"},
    Error{GPUSCHED_CL_ERROR(CL_OUT_OF_RESOURCES), "use smaller blocks or less local memory"},
    Error{GPUSCHED_CL_ERROR(CL_OUT_OF_HOST_MEMORY), "the host is out of memory"},
    Error{GPUSCHED_CL_ERROR(CL_PROFILING_INFO_NOT_AVAILABLE), ""},
    Error{GPUSCHED_CL_ERROR(CL_MEM_COPY_OVERLAP), ""},
    Error{GPUSCHED_CL_ERROR(CL_BUILD_PROGRAM_FAILURE), "read the build log"},
    Error{GPUSCHED_CL_ERROR(CL_MAP_FAILURE), ""},
    Error{GPUSCHED_CL_ERROR(CL_MISALIGNED_SUB_BUFFER_OFFSET),
          "align the buffer argument's offset as the device asks"},
    Error{GPUSCHED_CL_ERROR(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST), ""},
    Error{GPUSCHED_CL_ERROR(CL_COMPILE_PROGRAM_FAILURE), ""},
    Error{GPUSCHED_CL_ERROR(CL_LINKER_NOT_AVAILABLE), ""},
    Error{GPUSCHED_CL_ERROR(CL_LINK_PROGRAM_FAILURE), ""},
    Error{GPUSCHED_CL_ERROR(CL_KERNEL_ARG_INFO_NOT_AVAILABLE), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_VALUE), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_DEVICE), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_CONTEXT), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_COMMAND_QUEUE), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_HOST_PTR), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_MEM_OBJECT), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_BINARY), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_BUILD_OPTIONS), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_PROGRAM), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_PROGRAM_EXECUTABLE), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_KERNEL_NAME), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_KERNEL_DEFINITION), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_KERNEL), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_ARG_INDEX), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_ARG_VALUE), "check the kind of the argument"},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_ARG_SIZE), "check the size of the argument"},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_KERNEL_ARGS), "give every argument"},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_WORK_DIMENSION), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_WORK_GROUP_SIZE),
          "use a block the kernel and the device allow"},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_WORK_ITEM_SIZE), "use a block the device allows"},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_GLOBAL_OFFSET), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_EVENT_WAIT_LIST), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_EVENT), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_OPERATION), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_BUFFER_SIZE), ""},
    Error{GPUSCHED_CL_ERROR(CL_INVALID_GLOBAL_WORK_SIZE), "use a smaller grid"},
};
#undef GPUSCHED_CL_ERROR

const Error* Find(cl_int code) {
  for (const Error& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

}  // namespace

std::string ClErrorName(cl_int error) {
  const Error* known = Find(error);
  return known != nullptr ? std::string(known->name) : "OpenCL error " + std::to_string(error);
}

Status ClFailure(std::string_view what, cl_int error) {
  std::string message = std::string(what) + " failed with " + ClErrorName(error);
  const Error* known = Find(error);
  if (known != nullptr && !known->advice.empty()) message += "; " + std::string(known->advice);
  return Status(StatusCode::kInternal, reason::kDeviceFailed, std::move(message));
}

}  // namespace gpusched::device
