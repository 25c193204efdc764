// One block's run: its threads with their frames, and what every instruction does to them.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/reasons.h"
#include "support/fake_cudart/ptx_code.h"
#include "support/fake_cudart/ptx_interpreter.h"

namespace gpusched::test::ptx {

constexpr std::uint32_t kWarp = 32;

struct Frame {
  const CodeFunction* function = nullptr;
  std::uint32_t next = 0;             // op
  std::size_t registers = 0;          // where they begin in the thread's
  std::uint64_t local = 0;            // where its local memory begins
  std::vector<std::byte> parameters;  // .param variables
  std::uint32_t result_at = 0;        // in the caller's parameters
};

struct Thread {
  enum class State : std::uint8_t { kRuns, kAtBarrier, kAtWarp, kDone };
  State state = State::kRuns;
  std::uint32_t index = 0;  // in the block, x fastest
  device::Dim3 place;
  std::vector<Frame> frames;
  std::vector<std::uint64_t> registers;
  std::vector<std::byte> local;
  std::uint32_t barrier = 0, expected = 0;  // kAtBarrier
  bool carry = false;
};

// Gives each thread its turn until it waits, then lets go those that have all arrived.
class BlockRun {
 public:
  BlockRun(DecodedProgram& program, std::string& output, const CodeFunction& entry,
           const PtxLaunch& launch, const Memory& memory, std::uint64_t& executed)
      : program_(program),
        output_(output),
        entry_(entry),
        launch_(launch),
        memory_(memory),
        executed_(executed),
        shared_(program.shared_bytes),
        dynamic_(launch.dynamic_shared_bytes) {}

  Status Run(device::Dim3 block);

 private:
  void Prepare();
  void RunThread(Thread& thread);
  void Step(Thread& thread, const Op& op);
  bool Release();
  bool ReleaseWarps();
  bool ReleaseBarriers();
  void Load(Thread& thread, const Op& op);
  void Store(Thread& thread, const Op& op);
  void Atomic(Thread& thread, const Op& op);
  void Move(Thread& thread, const Op& op);
  void Compute(Thread& thread, const Op& op);
  void ConvertAddress(Thread& thread, const Op& op);
  void Call(Thread& thread, const Op& op);
  void CallSystem(Thread& thread, const Op& op, const std::string& name);
  void Return(Thread& thread);
  void Barrier(Thread& thread, const Op& op);
  void Together(const std::vector<Thread*>& threads, const Op& op);
  using WarpValues = std::array<std::uint64_t, kWarp>;  // what each lane brings
  void Vote(Thread& thread, const Op& op, std::uint32_t present, std::uint32_t holds);
  void Shuffle(Thread& thread, const Op& op, const WarpValues& value);
  void Match(Thread& thread, const Op& op, const WarpValues& value, std::uint32_t present);
  void Print(Thread& thread, const Op& op);

  std::uint64_t Read(Thread& thread, const Operand& operand) const;
  std::uint64_t SpecialValue(const Thread& thread, Special special) const;
  void Write(Thread& thread, const Operand& operand, std::uint64_t value, Type type);
  std::uint64_t& Register(Thread& thread, std::uint64_t index) const {
    return thread.registers[thread.frames.back().registers + index];
  }
  std::byte* Resolve(Thread& thread, const Op& op, const Operand& operand, std::size_t bytes);
  std::byte* Generic(Thread& thread, std::uint64_t address, std::size_t bytes);
  std::byte* SharedAt(std::uint64_t at, std::size_t bytes);
  static std::byte* Within(std::vector<std::byte>& memory, std::uint64_t at, std::size_t bytes) {
    return at <= memory.size() && bytes <= memory.size() - at ? memory.data() + at : nullptr;
  }
  void Fail(const Op& op, StatusCode code, std::string_view why, std::string_view what) {
    if (!status_.ok()) return;
    status_ = Status(code, why,
                     "kernel '" + entry_.name + "', " + program_.module->Place(op.token) + ", '" +
                         std::string(program_.module->Text(op.token)) + "': " + std::string(what));
  }
  void Unknown(const Op& op) {
    Fail(op, StatusCode::kUnimplemented, reason::kBadModule,
         "the PTX interpreter does not know this form");
  }
  static std::uint64_t FromBytes(const std::byte* from, std::uint32_t bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, from, bytes);
    return value;
  }

  DecodedProgram& program_;
  std::string& output_;
  const CodeFunction& entry_;
  const PtxLaunch& launch_;
  const Memory& memory_;
  std::uint64_t& executed_;
  device::Dim3 block_;
  std::vector<Thread> threads_;
  std::vector<std::byte> shared_, dynamic_;
  Status status_;
};

}  // namespace gpusched::test::ptx
