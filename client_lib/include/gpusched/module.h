// A module: kernels built for a session's device, unloaded with the last handle that names it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/export.h"

namespace gpusched {

namespace internal {
struct ModuleRecord;
}  // namespace internal

// The same kernels in as many forms as there are; the device picks. Empty ones are left out. All
// together must fit one frame of 2 MiB with what surrounds them: 2 MiB - 128 bytes always do,
// FRAME_TOO_LARGE beyond. The virtual device reads texts of at most 1 MiB.
//
// `virtual_text` has one kernel a line; what stands in brackets may be left out, # begins a
// comment:
//
//   kernel NAME time_per_block=10us [cuttable=yes|no] [parameters=buffer,u32,f32,local]
//               [scale=INDEX] [fail=no|yes]                          (all on one line)
//
// parameters: buffer, local, u8 u16 u32 u64 i32 i64 f32 f64, or bytesN (N in 1..4096), in order.
// scale: the index, from 0, of an unsigned parameter whose value multiplies time_per_block.
// fail: launches of the kernel take their time and then fail, for trying out failures.
// Defaults: cuttable=yes, no parameters, no scale, fail=no. BAD_MODULE with every error and its
// line.
struct ModuleImages {
  std::string_view source = {};       // OpenCL C
  std::string_view cuda_source = {};  // CUDA C++
  std::string_view ptx = {};
  std::string_view cubin = {};
  std::string_view fatbin = {};
  std::string_view virtual_text = {};  // for the virtual device
};

struct KernelInfo {
  struct Parameter {
    enum class Kind : std::uint8_t { kValue, kBuffer, kLocal };
    Kind kind = Kind::kValue;
    std::uint32_t size = 0;  // bytes of a value
    std::string name;        // "" where unknown
  };
  std::string name;
  std::vector<Parameter> parameters;
  bool cuttable = false;
  std::string whole_reason;  // why it cannot be cut, in words
};

// Names one kernel of a module and keeps the module loaded. Cheap to copy.
class GPUSCHED_EXPORT Kernel {
 public:
  const std::string& name() const { return name_; }

 private:
  friend class Module;
  friend class Job;
  Kernel(std::shared_ptr<const internal::ModuleRecord> module, std::string name)
      : module_(std::move(module)), name_(std::move(name)) {}

  std::shared_ptr<const internal::ModuleRecord> module_;
  std::string name_;
};

// Copies name the same module.
class GPUSCHED_EXPORT Module {
 public:
  const std::vector<KernelInfo>& kernels() const;
  // What the compiler said, "" if nothing.
  const std::string& build_log() const;
  // A name that is not in kernels() makes Submit answer NOT_FOUND (UNKNOWN_KERNEL).
  Kernel kernel(std::string_view name) const;

 private:
  friend class Session;
  explicit Module(std::shared_ptr<const internal::ModuleRecord> record);

  std::shared_ptr<const internal::ModuleRecord> record_;
};

}  // namespace gpusched
