// Rewrites a module so that each kernel runs any box of its grid's blocks and cannot tell.
//
// Each entry gets one more parameter, a BoxParameter; a prologue adds its offset to %ctaid, and
// %nctaid becomes the grid it names. Device functions find the same values in a small slot of
// shared memory that every thread of the block writes alike. A launch of the whole grid passes
// offset 0 and the grid itself, so that one rewritten module serves every launch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/ptx/boxes.h"
#include "device/cuda/ptx/classify.h"
#include "device/cuda/ptx/module.h"
#include "gpusched/status.h"

namespace gpusched::device::ptx {

struct RewrittenKernel {
  std::string name;
  Verdict verdict;  // kWhole wherever `boxed` is false
  // It takes a BoxParameter at box_offset of its parameter block, behind its own. An entry that is
  // not boxed is as it was and must be launched whole, without that parameter. One that is boxed
  // but kWhole takes the parameter all the same.
  bool boxed = false;
  std::uint32_t box_offset = 0;
  std::uint32_t parameter_bytes = 0;          // of the original parameter block
  std::vector<std::uint32_t> offsets, sizes;  // of the original parameters
  std::uint32_t added_shared_bytes = 0;       // static shared memory of the slot: 0 or 32
};

struct Rewritten {
  std::string text;
  std::vector<RewrittenKernel> kernels;  // in the module's order
  bool mutable_globals = false;          // never load original and rewritten side by side
};

// Fails only if the result would not pass its own check; the original then runs whole.
Result<Rewritten> Rewrite(const Module& module);
// Parses, then rewrites.
Result<Rewritten> Rewrite(std::string text);

// The module with this one entry and everything it reaches: for rewriting kernel by kernel.
// NOT_FOUND (UNKNOWN_KERNEL) lists the entries there are.
Result<std::string> ExtractEntry(const Module& module, std::string_view entry);

}  // namespace gpusched::device::ptx
