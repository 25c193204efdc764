// A thread's turn: instruction after instruction until it waits or is done.
#include "support/fake_cudart/ptx_block.h"

#include <algorithm>
#include <utility>

namespace gpusched::test::ptx {
namespace {

constexpr std::uint64_t kAskEvery = 1 << 16;  // instructions between two questions to go on

}  // namespace

void BlockRun::Prepare() {
  const device::Dim3 size = launch_.block;
  threads_.resize(device::Volume(size));
  for (std::uint32_t i = 0; i < threads_.size(); ++i) {
    Thread& thread = threads_[i];
    thread.state = Thread::State::kRuns;
    thread.index = i;
    thread.place = {i % size.x, i / size.x % size.y, i / size.x / size.y};
    thread.registers.assign(entry_.registers, 0);
    thread.local.assign(entry_.local_bytes, std::byte{0});
    thread.carry = false;
    thread.frames.clear();
    Frame frame{.function = &entry_, .parameters = {}};
    frame.parameters.assign(std::max<std::size_t>(entry_.frame_bytes, launch_.parameters.size()),
                            std::byte{0});
    std::copy(launch_.parameters.begin(), launch_.parameters.end(), frame.parameters.begin());
    thread.frames.push_back(std::move(frame));
  }
}

Status BlockRun::Run(device::Dim3 block) {
  block_ = block;
  Prepare();
  for (;;) {
    bool done = true;
    for (Thread& thread : threads_) {
      if (thread.state == Thread::State::kRuns) RunThread(thread);
      if (!status_.ok()) return status_;
      done = done && thread.state == Thread::State::kDone;
    }
    if (done) return Status::Ok();
    if (!Release()) {
      return {StatusCode::kAborted, reason::kDeviceFailed,
              "kernel '" + entry_.name + "': its threads wait for each other for ever"};
    }
    if (!status_.ok()) return status_;
  }
}

void BlockRun::RunThread(Thread& thread) {
  while (thread.state == Thread::State::kRuns && status_.ok()) {
    Frame& frame = thread.frames.back();
    if (frame.next >= frame.function->ops.size()) {
      Return(thread);
      continue;
    }
    const Op& op = frame.function->ops[frame.next++];
    if (++executed_ > launch_.most_instructions) {
      return Fail(op, StatusCode::kDeadlineExceeded, reason::kDeviceFailed,
                  "more instructions than the launch may execute");
    }
    if (executed_ % kAskEvery == 0 && launch_.go_on && !launch_.go_on()) {
      return Fail(op, StatusCode::kCancelled, reason::kCancelled, "the launch was ended");
    }
    if (op.guard != kNoRegister && (Register(thread, op.guard) != 0) == op.guard_negated) {
      continue;
    }
    Step(thread, op);
  }
}

void BlockRun::Step(Thread& thread, const Op& op) {
  switch (op.code) {
    case Code::k_ld:
    case Code::k_ldu: return Load(thread, op);
    case Code::k_st: return Store(thread, op);
    case Code::k_atom:
    case Code::k_red: return Atomic(thread, op);
    case Code::k_mov: return Move(thread, op);
    case Code::k_cvta:
    case Code::k_isspacep: return ConvertAddress(thread, op);
    case Code::k_prefetch:
    case Code::k_membar:
    case Code::k_fence:
    case Code::k_nanosleep: return;
    case Code::k_bra: thread.frames.back().next = op.targets[0]; return;
    case Code::k_brx: {
      const std::uint64_t which = Read(thread, op.operands[0]) & 0xffffffff;
      if (which >= op.targets.size()) return Unknown(op);
      thread.frames.back().next = op.targets[which];
      return;
    }
    case Code::k_call: return Call(thread, op);
    case Code::k_ret: return Return(thread);
    case Code::k_exit: thread.state = Thread::State::kDone; return;
    case Code::k_trap: return Fail(op, StatusCode::kAborted, reason::kDeviceFailed, "a trap");
    case Code::k_bar:
    case Code::k_barrier: return Barrier(thread, op);
    // A warp may run its threads apart at any time: a thread alone is active alone.
    case Code::k_activemask:
      return Write(thread, op.operands[0], 1u << (thread.index % kWarp), Type::kU32);
    case Code::k_vote:
    case Code::k_shfl:
    case Code::k_match:
    case Code::k_redux:
    case Code::k_elect: thread.state = Thread::State::kAtWarp; return;
    default: return Compute(thread, op);
  }
}

std::uint64_t BlockRun::SpecialValue(const Thread& thread, Special special) const {
  const std::uint32_t lane = thread.index % kWarp;
  const device::Dim3 size = launch_.block;
  switch (special) {
    case Special::kTidX: return thread.place.x;
    case Special::kTidY: return thread.place.y;
    case Special::kTidZ: return thread.place.z;
    case Special::kNtidX: return size.x;
    case Special::kNtidY: return size.y;
    case Special::kNtidZ: return size.z;
    case Special::kCtaidX: return block_.x;
    case Special::kCtaidY: return block_.y;
    case Special::kCtaidZ: return block_.z;
    case Special::kNctaidX: return launch_.grid.x;
    case Special::kNctaidY: return launch_.grid.y;
    case Special::kNctaidZ: return launch_.grid.z;
    case Special::kLaneid: return lane;
    case Special::kWarpid: return thread.index / kWarp;
    case Special::kNwarpid: return (threads_.size() + kWarp - 1) / kWarp;
    case Special::kWarpsize: return kWarp;
    case Special::kLanemaskEq: return 1u << lane;
    case Special::kLanemaskLt: return (1u << lane) - 1;
    case Special::kLanemaskLe: return (2u << lane) - 1;
    case Special::kLanemaskGt: return ~((2u << lane) - 1);
    case Special::kLanemaskGe: return ~((1u << lane) - 1);
    case Special::kSmid: return 0;
    case Special::kNsmid: return 1;
    case Special::kClock: return executed_;
    case Special::kGridid: return 0;
    case Special::kDynamicShared: return launch_.dynamic_shared_bytes;
  }
  return 0;
}

std::uint64_t BlockRun::Read(Thread& thread, const Operand& operand) const {
  switch (operand.kind) {
    case Operand::Kind::kNone: return 0;
    case Operand::Kind::kRegister: {
      const std::uint64_t value = Register(thread, operand.value);
      return operand.negated ? value ^ 1 : value;
    }
    case Operand::Kind::kImmediate: return operand.value;
    case Operand::Kind::kSpecial: return SpecialValue(thread, static_cast<Special>(operand.value));
    case Operand::Kind::kLocal: return thread.frames.back().local + operand.value;
    case Operand::Kind::kParam: return operand.value;
    case Operand::Kind::kVector: return 0;
  }
  return 0;
}

void BlockRun::Write(Thread& thread, const Operand& operand, std::uint64_t value, Type type) {
  if (operand.kind != Operand::Kind::kRegister) return;
  if (type == Type::kPredicate) {
    value = value != 0 ? 1 : 0;
  } else if (BytesOf(type) <= 4) {
    value &= 0xffffffff;
    if (BytesOf(type) == 2) value &= 0xffff;
  }
  Register(thread, operand.value) = value;
}

}  // namespace gpusched::test::ptx
