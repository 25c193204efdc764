// The codes that differ for us, each with what can be done about it.
#include "device/cuda/error.h"

#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

// "" where the name says it all.
std::string_view Advice(cudaError_t error) {
  switch (static_cast<int>(error)) {
    case cudaErrorMemoryAllocation:
      return "the GPU has no memory left beside what others hold outside gpusched; free some, or "
             "promise less";
    case cudaErrorInvalidConfiguration: return "the grid or block is beyond the device's limits";
    case cudaErrorLaunchOutOfResources:
      return "the block needs more registers or threads than the kernel can have; make it smaller";
    case cudaErrorNoKernelImageForDevice: return "the image is for another architecture";
    case cudaErrorUnsupportedPtxVersion:
      return "the PTX is newer than the driver; update the driver, or compile with an older "
             "toolkit";
    case cudaErrorInvalidPtx: return "the driver cannot compile this PTX";
    case cudaErrorDevicesUnavailable: return "the GPU is gone or taken by somebody else";
    case cudaErrorNotSupported: return "this GPU or driver cannot do that";
    default: return "";
  }
}

}  // namespace

std::string CudaErrorName(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + " (" + std::to_string(static_cast<int>(error)) +
         ")";
}

bool IsSticky(cudaError_t error) {
  switch (static_cast<int>(error)) {
    case 226:  // a contained fault: the process must go all the same
    // Memory or a link has lost bytes under the commands in flight, so that nothing they computed,
    // and nothing that lies in the context, is to be trusted.
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorAssert:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case 721: return true;  // tensor memory leaked; older toolkits have no name for it
    default: return false;
  }
}

bool MeansNoGpu(cudaError_t error) {
  switch (static_cast<int>(error)) {
    case cudaErrorInitializationError:
    case cudaErrorStubLibrary:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

Status CudaFailure(std::string_view what, cudaError_t error) {
  std::string message = std::string(what) + " failed with " + CudaErrorName(error);
  if (const std::string_view advice = Advice(error); !advice.empty()) {
    message += "; " + std::string(advice);
  }
  if (error == cudaErrorMemoryAllocation) {
    return Status(StatusCode::kResourceExhausted, reason::kDeviceMemory, std::move(message));
  }
  return Status(StatusCode::kInternal, reason::kDeviceFailed, std::move(message));
}

}  // namespace gpusched::device
