// Runs kernels from their PTX text on the CPU, block after block, for tests of the text itself.
//
// It knows these opcodes; any other fails the load by name:
//   abs add addc sub subc mul mul24 mad mad24 madc fma div rem neg min max sad
//   and or xor not cnot lop3 shl shr shf bfe bfi bfind bmsk brev popc clz prmt
//   mov cvt cvta isspacep set setp selp slct testp copysign
//   sqrt rsqrt rcp sin cos ex2 lg2 tanh
//   ld ldu st atom red prefetch membar fence nanosleep
//   bar barrier bra brx call ret exit trap
//   activemask vote shfl match redux elect
// Types: b8..b64, u8..u64, s8..s64, f16, f16x2 (moves only), f32, f64, pred. State spaces: global,
// shared, local, const, param and generic. Threads of a block take turns; warp-wide operations and
// barriers wait for those they name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "gpusched/status.h"

namespace gpusched::test {

// Device memory as a kernel sees it: says where the bytes of an address lie, null where none do.
using Memory = std::function<std::byte*(std::uint64_t address, std::size_t bytes)>;

struct PtxLaunch {
  std::string_view kernel;
  device::Dim3 grid, block;
  std::span<const std::byte> parameters;  // the parameter block as the driver lays it out
  std::uint64_t dynamic_shared_bytes = 0;
  // Asked now and then; false ends the launch with CANCELLED.
  std::function<bool()> go_on;
  // Around each block, on the thread that launches.
  std::function<void()> before_block, after_block;
  // Beyond so many instructions the launch fails with DEADLINE_EXCEEDED: blocks that run one after
  // the other may wait for each other for ever.
  std::uint64_t most_instructions = 2'000'000'000;
};

class PtxProgram {
 public:
  // INVALID_ARGUMENT (BAD_MODULE) for text that is no PTX; UNIMPLEMENTED names an opcode that is
  // not in the list above.
  static Result<PtxProgram> Load(std::string text);
  PtxProgram(PtxProgram&&) noexcept;
  PtxProgram& operator=(PtxProgram&&) noexcept;
  ~PtxProgram();

  std::vector<std::string> kernels() const;
  // The module's own variables live in the program: their bytes by name, empty where unknown.
  std::span<std::byte> Variable(std::string_view name);

  // Returns when every block has run. OUT_OF_RANGE for an address that `memory` does not know
  // (CUDA's 700), ABORTED for a trap, NOT_FOUND (UNKNOWN_KERNEL). One launch at a time.
  Status Launch(const PtxLaunch& launch, const Memory& memory);
  // What the kernels printed since the last call.
  std::string TakeOutput();

  struct Code;  // the decoded text

 private:
  explicit PtxProgram(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

}  // namespace gpusched::test
