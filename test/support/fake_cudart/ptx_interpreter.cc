// Gives each thread of a block its turn until it waits, then lets go those that have all arrived.
#include "support/fake_cudart/ptx_interpreter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "gpusched/reasons.h"
#include "support/fake_cudart/ptx_code.h"

namespace gpusched::test {
namespace {

using ptx::Code;
using ptx::CodeFunction;
using ptx::Op;
using ptx::Operand;
using ptx::Special;
using ptx::StateSpace;
using ptx::Type;

constexpr std::uint32_t kWarp = 32;
constexpr std::size_t kDeepestCall = 1'000;
constexpr std::uint64_t kMostLocalBytes = 1 << 20;  // of one thread
constexpr std::uint64_t kMostDynamicShared = 1 << 20;
constexpr std::uint64_t kAskEvery = 1 << 16;  // instructions between two questions to go on

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

}  // namespace

struct PtxProgram::Code {
  ptx::DecodedProgram program;
  std::string output;
};

namespace {

class BlockRun {
 public:
  BlockRun(ptx::DecodedProgram& program, std::string& output, const CodeFunction& entry,
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

  ptx::DecodedProgram& program_;
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
    if (op.guard != ptx::kNoRegister && (Register(thread, op.guard) != 0) == op.guard_negated) {
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
  } else if (ptx::BytesOf(type) <= 4) {
    value &= 0xffffffff;
    if (ptx::BytesOf(type) == 2) value &= 0xffff;
  }
  Register(thread, operand.value) = value;
}

std::byte* BlockRun::SharedAt(std::uint64_t at, std::size_t bytes) {
  if (at >= ptx::kDynamicShared) return Within(dynamic_, at - ptx::kDynamicShared, bytes);
  return Within(shared_, at, bytes);
}

std::byte* BlockRun::Generic(Thread& thread, std::uint64_t address, std::size_t bytes) {
  if (address - ptx::kSharedWindow < ptx::kWindowBytes) {
    return SharedAt(address - ptx::kSharedWindow, bytes);
  }
  if (address - ptx::kLocalWindow < ptx::kWindowBytes) {
    return Within(thread.local, address - ptx::kLocalWindow, bytes);
  }
  const std::uint64_t own = address - reinterpret_cast<std::uint64_t>(program_.memory.data());
  if (std::byte* place = Within(program_.memory, own, bytes)) return place;
  return memory_ ? memory_(address, bytes) : nullptr;
}

std::byte* BlockRun::Resolve(Thread& thread, const Op& op, const Operand& operand,
                             std::size_t bytes) {
  const std::uint64_t at = Read(thread, operand) + static_cast<std::uint64_t>(operand.offset);
  std::byte* place = nullptr;
  switch (op.space) {
    case StateSpace::kParam: place = Within(thread.frames.back().parameters, at, bytes); break;
    case StateSpace::kShared: place = SharedAt(at & 0xffffffff, bytes); break;
    case StateSpace::kLocal: place = Within(thread.local, at, bytes); break;
    case StateSpace::kGlobal:
    case StateSpace::kConst:
    case StateSpace::kGeneric: place = Generic(thread, at, bytes); break;
  }
  if (place != nullptr && at % bytes != 0 && op.space != StateSpace::kParam && op.lanes == 1 &&
      bytes <= sizeof(std::uint64_t)) {
    Fail(op, StatusCode::kOutOfRange, reason::kMisaligned, "a misaligned address");
    return nullptr;
  }
  if (place == nullptr) {
    Fail(op, StatusCode::kOutOfRange, reason::kOutOfBounds, "an illegal address");
  }
  return place;
}

void BlockRun::Load(Thread& thread, const Op& op) {
  const std::uint32_t bytes = ptx::BytesOf(op.type);
  const std::byte* from = Resolve(thread, op, op.operands[1], std::size_t{bytes} * op.lanes);
  if (from == nullptr) return;
  const Operand& target = op.operands[0];
  for (std::uint32_t lane = 0; lane < op.lanes; ++lane) {
    const Operand& each = target.kind == Operand::Kind::kVector
                              ? thread.frames.back().function->pool[target.value + lane]
                              : target;
    std::uint64_t value = ptx::Normal(op.type, FromBytes(from + lane * bytes, bytes));
    // A register may be wider than what is loaded.
    if (each.kind == Operand::Kind::kRegister) Register(thread, each.value) = value;
  }
}

void BlockRun::Store(Thread& thread, const Op& op) {
  const std::uint32_t bytes = ptx::BytesOf(op.type);
  std::byte* to = Resolve(thread, op, op.operands[0], std::size_t{bytes} * op.lanes);
  if (to == nullptr) return;
  const Operand& source = op.operands[1];
  for (std::uint32_t lane = 0; lane < op.lanes; ++lane) {
    const std::uint64_t value =
        Read(thread, source.kind == Operand::Kind::kVector
                         ? thread.frames.back().function->pool[source.value + lane]
                         : source);
    std::memcpy(to + lane * bytes, &value, bytes);
  }
}

void BlockRun::Atomic(Thread& thread, const Op& op) {
  const bool returns = op.code == Code::k_atom;
  const std::size_t first = returns ? 1 : 0;
  if (op.operands.size() < first + 2) return Unknown(op);
  const std::uint32_t bytes = ptx::BytesOf(op.type);
  std::byte* place = Resolve(thread, op, op.operands[first], bytes);
  if (place == nullptr) return;
  const std::uint64_t old = FromBytes(place, bytes);
  const std::uint64_t c = op.operands.size() > first + 2 ? Read(thread, op.operands[first + 2]) : 0;
  const auto combined = ptx::Combine(op, old, Read(thread, op.operands[first + 1]), c);
  if (!combined) return Unknown(op);
  std::memcpy(place, &*combined, bytes);
  if (returns) Write(thread, op.operands[0], ptx::Normal(op.type, old), op.type);
}

// Also packs and unpacks: "mov.b64 {%r1, %r2}, %rd1".
void BlockRun::Move(Thread& thread, const Op& op) {
  const Operand &to = op.operands[0], &from = op.operands[1];
  const auto& pool = thread.frames.back().function->pool;
  std::uint64_t value = 0;
  if (from.kind == Operand::Kind::kVector) {
    const std::uint32_t bits = 8 * ptx::BytesOf(op.type) / from.count;
    for (std::uint32_t i = 0; i < from.count; ++i) {
      const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
      value |= (Read(thread, pool[from.value + i]) & mask) << (bits * i);
    }
  } else {
    value = Read(thread, from) + static_cast<std::uint64_t>(from.offset);
  }
  if (to.kind != Operand::Kind::kVector) return Write(thread, to, value, op.type);
  const std::uint32_t bits = 8 * ptx::BytesOf(op.type) / to.count;
  for (std::uint32_t i = 0; i < to.count; ++i) {
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    Write(thread, pool[to.value + i], value >> (bits * i) & mask, Type::kU32);
  }
}

void BlockRun::ConvertAddress(Thread& thread, const Op& op) {
  const std::uint64_t address = Read(thread, op.operands[1]);
  const bool to_space = op.Has("to");
  std::uint64_t window = 0;
  if (op.space == StateSpace::kShared) window = ptx::kSharedWindow;
  if (op.space == StateSpace::kLocal) window = ptx::kLocalWindow;
  if (op.code == Code::k_cvta) {
    return Write(thread, op.operands[0], to_space ? address - window : address + window, op.type);
  }
  const auto in = [&](std::uint64_t base) { return address - base < ptx::kWindowBytes; };
  const bool inside = window != 0 ? in(window) : !in(ptx::kSharedWindow) && !in(ptx::kLocalWindow);
  Write(thread, op.operands[0], inside ? 1 : 0, Type::kPredicate);
}

void BlockRun::Compute(Thread& thread, const Op& op) {
  ptx::Arithmetic in{.carry = thread.carry};
  const auto read = [&](std::size_t i) {
    return i < op.operands.size() ? Read(thread, op.operands[i]) : 0;
  };
  in.a = read(1);
  in.b = read(2);
  in.c = read(3);
  in.d = read(4);
  const std::optional<std::uint64_t> value = ptx::Evaluate(op, in);
  if (!value) return Unknown(op);
  thread.carry = in.carry;
  const bool wide = op.Has("wide");
  const bool predicate = op.code == Code::k_setp || op.code == Code::k_testp;
  // Some write 32 bits whatever they read; mul.wide twice what it reads.
  const bool counts = op.code == Code::k_popc || op.code == Code::k_clz || op.code == Code::k_bfind;
  Type type = predicate ? Type::kPredicate : counts ? Type::kU32 : op.type;
  if (wide && ptx::BytesOf(op.type) == 2) type = Type::kU32;
  if (wide && ptx::BytesOf(op.type) == 4) type = Type::kU64;
  if (op.operands.empty()) return Unknown(op);
  if (op.code == Code::k_cvt) {
    if (op.operands[0].kind == Operand::Kind::kRegister) {
      Register(thread, op.operands[0].value) = *value;
    }
    return;
  }
  Write(thread, op.operands[0], *value, type);
  if (op.code == Code::k_setp && op.second != ptx::kNoRegister) {
    bool known = false;
    const bool holds = ptx::Compare(op.modifiers.front(), op.from, in.a, in.b, &known);
    if (op.modifiers.size() > 1 && (op.Has("and") || op.Has("or") || op.Has("xor"))) {
      return Unknown(op);
    }
    Register(thread, op.second) = holds ? 0 : 1;
  }
}

void BlockRun::Call(Thread& thread, const Op& op) {
  std::int64_t callee = op.callee;
  if (callee < 0) {
    callee = static_cast<std::int64_t>(Read(thread, op.operands[0]) - ptx::kFunctionWindow);
  }
  if (callee < 0 || callee >= static_cast<std::int64_t>(program_.functions.size())) {
    return Fail(op, StatusCode::kOutOfRange, reason::kOutOfBounds, "a call to no function");
  }
  const CodeFunction& function = program_.functions[static_cast<std::size_t>(callee)];
  if (!function.has_body) return CallSystem(thread, op, function.name);
  if (thread.frames.size() == kDeepestCall) {
    return Fail(op, StatusCode::kAborted, reason::kDeviceFailed, "calls deeper than the stack");
  }
  Frame& caller = thread.frames.back();
  Frame frame{.function = &function,
              .registers = caller.registers + caller.function->registers,
              .local = (thread.local.size() + 15) / 16 * 16,
              .parameters = std::vector<std::byte>(function.frame_bytes),
              .result_at = op.result.offset};
  if (frame.local + function.local_bytes > kMostLocalBytes) {
    return Fail(op, StatusCode::kAborted, reason::kDeviceFailed, "more local memory than there is");
  }
  const std::size_t arguments = std::min(function.formals.size(), op.arguments.size());
  for (std::size_t i = 0; i < arguments; ++i) {
    const ptx::Actual &from = op.arguments[i], &to = function.formals[i];
    std::memcpy(frame.parameters.data() + to.offset, caller.parameters.data() + from.offset,
                std::min(from.bytes, to.bytes));
  }
  thread.registers.resize(std::max(thread.registers.size(), frame.registers + function.registers));
  thread.local.resize(frame.local + function.local_bytes);
  thread.frames.push_back(std::move(frame));
}

void BlockRun::Return(Thread& thread) {
  Frame done = std::move(thread.frames.back());
  thread.frames.pop_back();
  if (thread.frames.empty()) {
    thread.state = Thread::State::kDone;
    return;
  }
  thread.local.resize(done.local);
  const ptx::Actual& result = done.function->result;
  std::vector<std::byte>& parameters = thread.frames.back().parameters;
  if (result.bytes == 0 || done.result_at + result.bytes > parameters.size()) return;
  std::memcpy(parameters.data() + done.result_at, done.parameters.data() + result.offset,
              result.bytes);
}

void BlockRun::CallSystem(Thread& thread, const Op& op, const std::string& name) {
  if (name == "vprintf") return Print(thread, op);
  if (name == "__assertfail") {
    return Fail(op, StatusCode::kAborted, reason::kDeviceFailed, "an assertion failed");
  }
  Fail(op, StatusCode::kUnimplemented, reason::kBadModule, "no body of '" + name + "'");
}

// The format and where its arguments lie; only whole numbers and text are told, which is what tests
// print.
void BlockRun::Print(Thread& thread, const Op& op) {
  const auto& parameters = thread.frames.back().parameters;
  if (op.arguments.size() < 2) return Unknown(op);
  std::uint64_t format = FromBytes(parameters.data() + op.arguments[0].offset, 8);
  std::uint64_t arguments = FromBytes(parameters.data() + op.arguments[1].offset, 8);
  for (;; ++format) {
    const std::byte* at = Generic(thread, format, 1);
    if (at == nullptr || *at == std::byte{0}) break;
    const char c = static_cast<char>(*at);
    if (c != '%') {
      output_ += c;
      continue;
    }
    const std::byte* kind = Generic(thread, ++format, 1);
    const std::byte* value = Generic(thread, arguments, 4);
    if (kind == nullptr || value == nullptr || *kind == std::byte{0}) break;
    const std::uint64_t bits = FromBytes(value, 4);
    output_ += static_cast<char>(*kind) == 'd' ? std::to_string(static_cast<std::int32_t>(bits))
                                               : std::to_string(bits);
    arguments += 4;
  }
}

void BlockRun::Barrier(Thread& thread, const Op& op) {
  if (op.Has("arrive")) return Unknown(op);
  if (op.Has("warp")) {
    thread.state = Thread::State::kAtWarp;
    return;
  }
  const bool reduces = op.Has("red");
  const std::size_t first = reduces ? 1 : 0;
  const std::size_t numbers = op.operands.size() - first - (reduces ? 1 : 0);
  thread.barrier = static_cast<std::uint32_t>(Read(thread, op.operands[first]));
  thread.expected =
      numbers > 1 ? static_cast<std::uint32_t>(Read(thread, op.operands[first + 1])) : 0;
  thread.state = Thread::State::kAtBarrier;
}

bool BlockRun::Release() {
  const bool warps = ReleaseWarps();
  return warps || ReleaseBarriers();
}

// All threads of a barrier's number go on when those it counts have come.
bool BlockRun::ReleaseBarriers() {
  bool released = false;
  std::uint32_t live = 0;
  for (const Thread& thread : threads_) live += thread.state != Thread::State::kDone ? 1 : 0;
  constexpr std::uint32_t kBarriers = 16;
  for (std::uint32_t barrier = 0; barrier < kBarriers; ++barrier) {
    std::vector<Thread*> here;
    for (Thread& thread : threads_) {
      if (thread.state == Thread::State::kAtBarrier && thread.barrier == barrier) {
        here.push_back(&thread);
      }
    }
    if (here.empty()) continue;
    const std::uint32_t expected = here[0]->expected == 0 ? live : here[0]->expected;
    if (here.size() < expected) continue;
    std::uint32_t holds = 0;
    const auto op_of = [](Thread& thread) -> const Op& {
      const Frame& frame = thread.frames.back();
      return frame.function->ops[frame.next - 1];
    };
    for (Thread* thread : here) {
      const Op& op = op_of(*thread);
      if (op.Has("red") && Read(*thread, op.operands.back()) != 0) ++holds;
    }
    for (Thread* thread : here) {
      const Op& op = op_of(*thread);
      thread->state = Thread::State::kRuns;
      if (!op.Has("red")) continue;
      if (op.Has("popc")) {
        Write(*thread, op.operands[0], holds, Type::kU32);
      } else {
        const bool all = holds == here.size();
        Write(*thread, op.operands[0], op.Has("and") ? all : holds > 0, Type::kPredicate);
      }
    }
    released = true;
  }
  return released;
}

// Threads of a warp that stand at the same instruction go on together when all that its mask names
// have come or are done.
bool BlockRun::ReleaseWarps() {
  bool released = false;
  for (std::size_t first = 0; first < threads_.size(); first += kWarp) {
    const std::size_t end = std::min(first + kWarp, threads_.size());
    for (std::size_t i = first; i < end; ++i) {
      if (threads_[i].state != Thread::State::kAtWarp) continue;
      const Frame& frame = threads_[i].frames.back();
      const Op& op = frame.function->ops[frame.next - 1];
      const std::uint64_t mask = Read(threads_[i], op.operands.back());
      std::vector<Thread*> together;
      bool complete = true;
      for (std::size_t other = first; other < end; ++other) {
        Thread& thread = threads_[other];
        if ((mask >> (other - first) & 1) == 0 || thread.state == Thread::State::kDone) continue;
        const bool here = thread.state == Thread::State::kAtWarp &&
                          thread.frames.back().function == frame.function &&
                          thread.frames.back().next == frame.next;
        complete = complete && here;
        together.push_back(&thread);
      }
      if (!complete || together.empty()) continue;
      Together(together, op);
      for (Thread* thread : together) thread->state = Thread::State::kRuns;
      released = true;
    }
  }
  return released;
}

void BlockRun::Together(const std::vector<Thread*>& threads, const Op& op) {
  if (op.code == Code::k_bar || op.code == Code::k_barrier) return;
  // What each brings, before anything is written.
  std::uint64_t value[kWarp] = {};
  std::uint32_t present = 0, holds = 0;
  for (Thread* thread : threads) {
    const std::uint32_t lane = thread->index % kWarp;
    value[lane] = op.code == Code::k_elect ? 0 : Read(*thread, op.operands[1]);
    present |= 1u << lane;
    if (value[lane] != 0) holds |= 1u << lane;
  }
  std::uint64_t reduced = 0;
  if (op.code == Code::k_redux) {
    Op combine;
    combine.type = op.type;
    combine.modifiers = op.modifiers;
    reduced = value[threads[0]->index % kWarp];
    for (std::size_t i = 1; i < threads.size(); ++i) {
      const auto next = ptx::Combine(combine, reduced, value[threads[i]->index % kWarp], 0);
      if (!next) return Unknown(op);
      reduced = *next;
    }
  }
  for (Thread* thread : threads) {
    const std::uint32_t lane = thread->index % kWarp;
    switch (op.code) {
      case Code::k_vote: {
        const bool all = holds == present;
        if (op.Has("ballot")) {
          Write(*thread, op.operands[0], holds, Type::kU32);
        } else if (op.Has("all")) {
          Write(*thread, op.operands[0], all, Type::kPredicate);
        } else if (op.Has("any")) {
          Write(*thread, op.operands[0], holds != 0, Type::kPredicate);
        } else {
          Write(*thread, op.operands[0], all || holds == 0, Type::kPredicate);
        }
        break;
      }
      case Code::k_shfl: {
        const auto by = static_cast<std::uint32_t>(Read(*thread, op.operands[2]) & 31);
        const auto clamp = static_cast<std::uint32_t>(Read(*thread, op.operands[3]));
        const std::uint32_t segment = clamp >> 8 & 31, most = clamp & 31;
        const std::uint32_t last = (lane & segment) | (most & ~segment), least = lane & segment;
        std::int64_t from = lane;
        bool inside = true;
        if (op.Has("up")) {
          from = std::int64_t{lane} - by;
          inside = from >= static_cast<std::int64_t>(last);
        } else if (op.Has("down")) {
          from = std::int64_t{lane} + by;
          inside = from <= last;
        } else if (op.Has("bfly")) {
          from = lane ^ by;
          inside = from <= last;
        } else {
          from = least | (by & ~segment);
          inside = from <= last;
        }
        if (!inside) from = lane;
        Write(*thread, op.operands[0], value[from & 31], Type::kU32);
        if (op.second != ptx::kNoRegister) Register(*thread, op.second) = inside ? 1 : 0;
        break;
      }
      case Code::k_match: {
        std::uint32_t same = 0;
        for (std::uint32_t i = 0; i < kWarp; ++i) {
          if ((present >> i & 1) != 0 &&
              ptx::Normal(op.type, value[i]) == ptx::Normal(op.type, value[lane])) {
            same |= 1u << i;
          }
        }
        const bool all = same == present;
        Write(*thread, op.operands[0], op.Has("all") ? (all ? present : 0) : same, Type::kU32);
        if (op.second != ptx::kNoRegister) Register(*thread, op.second) = all ? 1 : 0;
        break;
      }
      case Code::k_redux: Write(*thread, op.operands[0], reduced, Type::kU32); break;
      case Code::k_elect: {
        const auto leader = static_cast<std::uint32_t>(std::countr_zero(present));
        Write(*thread, op.operands[0], leader, Type::kU32);
        if (op.second != ptx::kNoRegister) Register(*thread, op.second) = lane == leader ? 1 : 0;
        break;
      }
      default: return Unknown(op);
    }
  }
}

}  // namespace

PtxProgram::PtxProgram(std::unique_ptr<Code> code) : code_(std::move(code)) {}
PtxProgram::PtxProgram(PtxProgram&&) noexcept = default;
PtxProgram& PtxProgram::operator=(PtxProgram&&) noexcept = default;
PtxProgram::~PtxProgram() = default;

Result<PtxProgram> PtxProgram::Load(std::string text) {
  Result<ptx::DecodedProgram> program = ptx::Decode(std::move(text));
  if (!program.ok()) return program.status();
  return PtxProgram(std::make_unique<Code>(Code{*std::move(program), {}}));
}

std::vector<std::string> PtxProgram::kernels() const {
  std::vector<std::string> names;
  for (const CodeFunction& function : code_->program.functions) {
    if (function.is_entry && function.has_body) names.push_back(function.name);
  }
  return names;
}

std::span<std::byte> PtxProgram::Variable(std::string_view name) {
  const auto found = code_->program.variables.find(name);
  if (found == code_->program.variables.end()) return {};
  return std::span(code_->program.memory).subspan(found->second.offset, found->second.bytes);
}

std::string PtxProgram::TakeOutput() { return std::exchange(code_->output, {}); }

Status PtxProgram::Launch(const PtxLaunch& launch, const Memory& memory) {
  ptx::DecodedProgram& program = code_->program;
  const auto found = program.function_by_name.find(launch.kernel);
  if (found == program.function_by_name.end() || !program.functions[found->second].is_entry) {
    return {StatusCode::kNotFound, reason::kUnknownKernel,
            "there is no kernel '" + std::string(launch.kernel) + "'"};
  }
  constexpr std::uint64_t kMostThreads = 1'024;
  if (device::Volume(launch.grid) == 0) {
    return {StatusCode::kInvalidArgument, reason::kBadGrid, "a grid of no blocks"};
  }
  if (device::Volume(launch.block) == 0 || device::Volume(launch.block) > kMostThreads) {
    return {StatusCode::kInvalidArgument, reason::kBadBlock, "a block of 1 to 1,024 threads"};
  }
  if (launch.dynamic_shared_bytes > kMostDynamicShared) {
    return {StatusCode::kInvalidArgument, reason::kLocalMemory, "too much dynamic shared memory"};
  }
  std::uint64_t executed = 0;
  BlockRun run(program, code_->output, program.functions[found->second], launch, memory, executed);
  for (std::uint32_t z = 0; z < launch.grid.z; ++z) {
    for (std::uint32_t y = 0; y < launch.grid.y; ++y) {
      for (std::uint32_t x = 0; x < launch.grid.x; ++x) {
        if (Status status = run.Run({x, y, z}); !status.ok()) return status;
      }
    }
  }
  return Status::Ok();
}

}  // namespace gpusched::test
