// Which kernels of a module may be run in parts, with the reason in words where one may not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/cuda/ptx/module.h"

namespace gpusched::device::ptx {

enum class Cut : std::uint8_t {
  kFreely,     // any part, any order
  kInOrder,    // a block waits for lower ones only: parts strictly increasing
  kUnbounded,  // right in parts, but a part may do the work of all: its time is not bounded
  kWhole,      // blocks wait for each other, or it cannot be told
};

struct Verdict {
  Cut cut = Cut::kFreely;
  std::string reason;  // why not freely, in words; "" for kFreely
};

// All that an entry may execute and name.
struct Reach {
  std::vector<std::uint32_t> functions;  // indices, itself first
  std::vector<std::uint32_t> variables;
  bool callee_reads_block_ids = false;  // a function that it calls, not itself
  std::uint64_t static_shared_bytes = 0;
};

class Classification {
 public:
  explicit Classification(const Module& module);

  // Of an entry, by its index in module.functions().
  const Verdict& verdict(std::uint32_t entry) const { return verdicts_[entry]; }
  const Reach& reach(std::uint32_t entry) const { return reaches_[entry]; }
  // Its own text cannot be rewritten, or need not be: it is launched by clusters.
  bool must_stay(std::uint32_t function) const {
    return !unknown_forms_[function].empty() || clusters_[function];
  }
  // %ctaid or %nctaid in the function's own body.
  bool reads_block_ids(std::uint32_t function) const { return reads_block_ids_[function]; }
  // Why its block ids cannot be replaced, in words; "" if they can.
  const std::string& unknown_form(std::uint32_t function) const { return unknown_forms_[function]; }

 private:
  std::vector<Verdict> verdicts_;
  std::vector<Reach> reaches_;
  std::vector<bool> reads_block_ids_;
  std::vector<std::string> unknown_forms_;
  std::vector<bool> clusters_;
};

}  // namespace gpusched::device::ptx
