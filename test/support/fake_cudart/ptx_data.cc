// What instructions do to registers and memory.
#include <algorithm>
#include <cstring>

#include "support/fake_cudart/ptx_block.h"

namespace gpusched::test::ptx {

std::byte* BlockRun::SharedAt(std::uint64_t at, std::size_t bytes) {
  if (at >= kDynamicShared) return Within(dynamic_, at - kDynamicShared, bytes);
  return Within(shared_, at, bytes);
}

std::byte* BlockRun::Generic(Thread& thread, std::uint64_t address, std::size_t bytes) {
  if (address - kSharedWindow < kWindowBytes) {
    return SharedAt(address - kSharedWindow, bytes);
  }
  if (address - kLocalWindow < kWindowBytes) {
    return Within(thread.local, address - kLocalWindow, bytes);
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
  const std::uint32_t bytes = BytesOf(op.type);
  const std::byte* from = Resolve(thread, op, op.operands[1], std::size_t{bytes} * op.lanes);
  if (from == nullptr) return;
  const Operand& target = op.operands[0];
  for (std::uint32_t lane = 0; lane < op.lanes; ++lane) {
    const Operand& each = target.kind == Operand::Kind::kVector
                              ? thread.frames.back().function->pool[target.value + lane]
                              : target;
    std::uint64_t value = Normal(op.type, FromBytes(from + lane * bytes, bytes));
    // A register may be wider than what is loaded.
    if (each.kind == Operand::Kind::kRegister) Register(thread, each.value) = value;
  }
}

void BlockRun::Store(Thread& thread, const Op& op) {
  const std::uint32_t bytes = BytesOf(op.type);
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
  const std::uint32_t bytes = BytesOf(op.type);
  std::byte* place = Resolve(thread, op, op.operands[first], bytes);
  if (place == nullptr) return;
  const std::uint64_t old = FromBytes(place, bytes);
  const std::uint64_t c = op.operands.size() > first + 2 ? Read(thread, op.operands[first + 2]) : 0;
  const auto combined = Combine(op, old, Read(thread, op.operands[first + 1]), c);
  if (!combined) return Unknown(op);
  std::memcpy(place, &*combined, bytes);
  if (returns) Write(thread, op.operands[0], Normal(op.type, old), op.type);
}

// Also packs and unpacks: "mov.b64 {%r1, %r2}, %rd1".
void BlockRun::Move(Thread& thread, const Op& op) {
  const Operand &to = op.operands[0], &from = op.operands[1];
  const auto& pool = thread.frames.back().function->pool;
  std::uint64_t value = 0;
  if (from.kind == Operand::Kind::kVector) {
    const std::uint32_t bits = 8 * BytesOf(op.type) / from.count;
    for (std::uint32_t i = 0; i < from.count; ++i) {
      const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
      value |= (Read(thread, pool[from.value + i]) & mask) << (bits * i);
    }
  } else {
    value = Read(thread, from) + static_cast<std::uint64_t>(from.offset);
  }
  if (to.kind != Operand::Kind::kVector) return Write(thread, to, value, op.type);
  const std::uint32_t bits = 8 * BytesOf(op.type) / to.count;
  for (std::uint32_t i = 0; i < to.count; ++i) {
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    Write(thread, pool[to.value + i], value >> (bits * i) & mask, Type::kU32);
  }
}

void BlockRun::ConvertAddress(Thread& thread, const Op& op) {
  const std::uint64_t address = Read(thread, op.operands[1]);
  const bool to_space = op.Has("to");
  std::uint64_t window = 0;
  if (op.space == StateSpace::kShared) window = kSharedWindow;
  if (op.space == StateSpace::kLocal) window = kLocalWindow;
  if (op.code == Code::k_cvta) {
    return Write(thread, op.operands[0], to_space ? address - window : address + window, op.type);
  }
  const auto in = [&](std::uint64_t base) { return address - base < kWindowBytes; };
  const bool inside = window != 0 ? in(window) : !in(kSharedWindow) && !in(kLocalWindow);
  Write(thread, op.operands[0], inside ? 1 : 0, Type::kPredicate);
}

void BlockRun::Compute(Thread& thread, const Op& op) {
  Arithmetic in{.carry = thread.carry};
  const auto read = [&](std::size_t i) {
    return i < op.operands.size() ? Read(thread, op.operands[i]) : 0;
  };
  in.a = read(1);
  in.b = read(2);
  in.c = read(3);
  in.d = read(4);
  const std::optional<std::uint64_t> value = Evaluate(op, in);
  if (!value) return Unknown(op);
  thread.carry = in.carry;
  const bool wide = op.Has("wide");
  const bool predicate = op.code == Code::k_setp || op.code == Code::k_testp;
  // Some write 32 bits whatever they read; mul.wide twice what it reads.
  const bool counts = op.code == Code::k_popc || op.code == Code::k_clz || op.code == Code::k_bfind;
  Type type = predicate ? Type::kPredicate : counts ? Type::kU32 : op.type;
  if (wide && BytesOf(op.type) == 2) type = Type::kU32;
  if (wide && BytesOf(op.type) == 4) type = Type::kU64;
  if (op.operands.empty()) return Unknown(op);
  if (op.code == Code::k_cvt) {
    if (op.operands[0].kind == Operand::Kind::kRegister) {
      Register(thread, op.operands[0].value) = *value;
    }
    return;
  }
  Write(thread, op.operands[0], *value, type);
  if (op.code == Code::k_setp && op.second != kNoRegister) {
    bool known = false;
    const bool holds = Compare(op.modifiers.front(), op.from, in.a, in.b, &known);
    if (op.modifiers.size() > 1 && (op.Has("and") || op.Has("or") || op.Has("xor"))) {
      return Unknown(op);
    }
    Register(thread, op.second) = holds ? 0 : 1;
  }
}

}  // namespace gpusched::test::ptx
