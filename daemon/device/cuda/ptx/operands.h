// What each instruction of a function writes and reads, as far as one instruction depends on
// another.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "device/cuda/ptx/flow.h"
#include "device/cuda/ptx/module.h"

namespace gpusched::device::ptx {

// A name of the function, numbered. Memory counts as a few names of its own: whoever stores makes
// one, whoever loads reads it.
using NameIndex = std::uint32_t;
inline constexpr NameIndex kSharedMemory = 0, kLocalMemory = 1, kGlobalMemory = 2;
inline constexpr NameIndex kFirstRegister = 3;
inline constexpr NameIndex kNoName = UINT32_MAX;

// Why a loop that ends by the instruction's result might wait for another block.
enum class Source : std::uint8_t {
  kNone,
  kCounter,   // an atomic that moves on at each call: a queue of work
  kExchange,  // compare and swap: a retry of one's own, or a lock
  kFlag,      // a load or atomic that may see what another block writes
};

struct Instruction {
  std::uint32_t statement = 0;
  std::uint32_t writes = 0, reads = 0, end = 0;  // in names(): [writes, reads) and [reads, end)
  NameIndex compared = kNoName;                  // kExchange: what memory is compared with
  Source source = Source::kNone;
  bool loads_global = false;
  bool is_trap = false;
};

class Operands {
 public:
  // See FindWait for callees_touch_others.
  Operands(const Module& module, const Function& function, const Flow& flow,
           const std::vector<bool>& callees_touch_others);

  const std::vector<Instruction>& instructions() const { return instructions_; }
  // Those of one block, as [first, end).
  std::uint32_t first_of(BlockIndex block) const { return first_of_block_[block]; }
  std::uint32_t end_of(BlockIndex block) const { return first_of_block_[block + 1]; }
  std::span<const NameIndex> writes(const Instruction& i) const {
    return std::span(names_).subspan(i.writes, i.reads - i.writes);
  }
  std::span<const NameIndex> reads(const Instruction& i) const {
    return std::span(names_).subspan(i.reads, i.end - i.reads);
  }
  NameIndex name_count() const { return name_count_; }

 private:
  std::vector<Instruction> instructions_;
  std::vector<std::uint32_t> first_of_block_;
  std::vector<NameIndex> names_;
  NameIndex name_count_ = kFirstRegister;
};

// Whether the word is the opcode of a load that may see what another block has just written, or of
// an atomic operation on what other blocks see.
bool IsSharedWithOthers(std::string_view opcode);

}  // namespace gpusched::device::ptx
