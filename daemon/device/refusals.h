// The refusals every backend shares, so that one mistake reads the same on each device.
#pragma once

#include <cstdint>
#include <string>

#include "gpusched/policy/types.h"
#include "gpusched/reasons.h"
#include "gpusched/status.h"

namespace gpusched::device {

inline Status NoSuchSession(SessionId session) {
  return Status(StatusCode::kNotFound, reason::kUnknownSession,
                "session " + std::to_string(session.serial) + " is not open on this device");
}
inline Status NoSuchModule(std::uint64_t module) {
  return Status(
      StatusCode::kNotFound, reason::kUnknownModule,
      "module " + std::to_string(module) + " is not loaded in this session; load it first");
}
inline Status NoSuchBuffer(std::uint64_t buffer) {
  return Status(
      StatusCode::kNotFound, reason::kUnknownBuffer,
      "buffer " + std::to_string(buffer) + " is not allocated in this session; allocate it first");
}
inline Status NoSuchKernel(std::uint64_t kernel, std::uint64_t kernels) {
  return Status(StatusCode::kNotFound, reason::kUnknownKernel,
                "kernel number " + std::to_string(kernel) + " of a module that has " +
                    std::to_string(kernels));
}
inline Status IdInUse(const char* what, std::uint64_t id) {
  return Status(StatusCode::kAlreadyExists, reason::kIdInUse,
                std::string(what) + " " + std::to_string(id) + " is in use; choose another number");
}

// Bytes [first, first + count) of a copy or fill of `total` bytes that begins at `offset` of a
// buffer.
inline Status CheckRange(std::uint64_t offset, std::uint64_t first, std::uint64_t count,
                         std::uint64_t total, std::uint64_t buffer_bytes) {
  if (offset <= buffer_bytes && total <= buffer_bytes - offset && first <= total &&
      count <= total - first) {
    return Status::Ok();
  }
  return Status(StatusCode::kOutOfRange, reason::kOutOfBounds,
                std::to_string(total) + " bytes from offset " + std::to_string(offset) +
                    " pass the end of a buffer of " + std::to_string(buffer_bytes) + " bytes");
}

}  // namespace gpusched::device
