// Kernels straight on an OpenCL driver, with nothing of ours in between: what results must equal,
// and what costs are measured against.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpusched/status.h"

namespace gpusched::test {

struct StraightArgument {
  enum class Kind : std::uint8_t { kBuffer, kValue, kLocal };
  Kind kind = Kind::kBuffer;
  std::size_t buffer = 0;  // index of a buffer
  std::string value = {};  // raw bytes
  std::uint64_t local_bytes = 0;
};

struct StraightLaunch {
  std::string kernel;
  std::vector<std::size_t> offset, global,
      local;  // one each per dimension; empty local: its choice
  std::vector<StraightArgument> arguments;
};

// A context, an in-order queue, one program and its buffers. Not thread-safe.
class StraightOpenCl {
 public:
  // The first device of the first platform that has one, or the one of that name. NOT_FOUND without
  // any. `options` as for clBuildProgram.
  static Result<std::unique_ptr<StraightOpenCl>> Open(const std::string& device_name = "");
  virtual ~StraightOpenCl() = default;

  virtual Status Build(const std::string& source, const std::string& options = "") = 0;
  // Any bytes the driver can hold; the index of the new buffer.
  virtual Result<std::size_t> Allocate(std::uint64_t bytes) = 0;
  virtual void FreeAll() = 0;
  virtual Status Write(std::size_t buffer, const void* from, std::uint64_t bytes) = 0;
  virtual Status Read(std::size_t buffer, void* to, std::uint64_t bytes) = 0;
  virtual Status Enqueue(const StraightLaunch&) = 0;
  // A place behind what was enqueued so far, and waiting for it. Each mark is waited for once.
  virtual Result<std::size_t> Mark() = 0;
  virtual Status Await(std::size_t mark) = 0;
  virtual Status Finish() = 0;
  // The local size the kernel insists on: zeros if none.
  virtual Result<std::vector<std::size_t>> RequiredLocal(const std::string& kernel) = 0;
};

}  // namespace gpusched::test
