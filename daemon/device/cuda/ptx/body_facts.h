// What one look over a function's body tells: block ids, features, calls, names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/cuda/ptx/module.h"

namespace gpusched::device::ptx {

struct BodyFacts {
  bool reads_block_ids = false;
  // An instruction that uses a block id in a form we cannot replace, in words; "" if none.
  std::string unknown_form;
  // Why a launch cannot be cut whatever its loops do, in words; "" if nothing stands against it.
  std::string whole;
  bool clusters = false;
  bool touches_others = false;                      // an operation that IsSharedWithOthers
  std::uint64_t static_shared_bytes = 0;            // of variables declared within
  bool calls_unknown = false;                       // through a pointer
  std::vector<std::uint32_t> functions, variables;  // named, in order of appearance, each once
};

// A block id as an operand: "%ctaid.x".
bool IsBlockId(std::string_view word);

BodyFacts LookOver(const Module& module, const Function& function);

}  // namespace gpusched::device::ptx
