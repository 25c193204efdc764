// PTX decoded for execution: what the decoder makes and the interpreter runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/ptx/module.h"
#include "gpusched/status.h"

namespace gpusched::test::ptx {

// The opcodes there are; ptx_interpreter.h lists them for people.
// clang-format off
#define GPUSCHED_PTX_OPCODES(X) \
  X(abs) X(add) X(addc) X(sub) X(subc) X(mul) X(mul24) X(mad) X(mad24) X(madc) X(fma) \
  X(div) X(rem) X(neg) X(min) X(max) X(sad) X(and) X(or) X(xor) X(not) X(cnot) X(lop3) \
  X(shl) X(shr) X(shf) X(bfe) X(bfi) X(bfind) X(bmsk) X(brev) X(popc) X(clz) X(prmt) X(mov) \
  X(cvt) X(cvta) X(isspacep) X(set) X(setp) X(selp) X(slct) X(testp) X(copysign) X(sqrt) \
  X(rsqrt) X(rcp) X(sin) X(cos) X(ex2) X(lg2) X(tanh) X(ld) X(ldu) X(st) X(atom) X(red) \
  X(prefetch) X(membar) X(fence) X(nanosleep) X(bar) X(barrier) X(bra) X(brx) X(call) \
  X(ret) X(exit) X(trap) X(activemask) X(vote) X(shfl) X(match) X(redux) X(elect)
// clang-format on

enum class Code : std::uint8_t {
#define GPUSCHED_PTX_ENUM(name) k_##name,
  GPUSCHED_PTX_OPCODES(GPUSCHED_PTX_ENUM)
#undef GPUSCHED_PTX_ENUM
};

enum class Type : std::uint8_t {
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF32,
  kF64,
  kPredicate
};
constexpr std::uint32_t BytesOf(Type type) {
  switch (type) {
    case Type::kU8:
    case Type::kS8:
    case Type::kPredicate: return 1;
    case Type::kU16:
    case Type::kS16:
    case Type::kF16: return 2;
    case Type::kU32:
    case Type::kS32:
    case Type::kF32: return 4;
    case Type::kU64:
    case Type::kS64:
    case Type::kF64: return 8;
  }
  return 8;
}

enum class StateSpace : std::uint8_t { kGeneric, kGlobal, kShared, kLocal, kConst, kParam };

enum class Special : std::uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kWarpsize,
  kLanemaskEq,
  kLanemaskLt,
  kLanemaskLe,
  kLanemaskGt,
  kLanemaskGe,
  kSmid,
  kNsmid,
  kClock,
  kGridid,
  kDynamicShared,
};

struct Operand {
  enum class Kind : std::uint8_t {
    kNone,
    kRegister,
    kImmediate,
    kSpecial,
    kLocal,
    kParam,
    kVector
  };
  Kind kind = Kind::kNone;
  bool negated = false;     // "!%p1"
  std::uint64_t value = 0;  // register, bits, Special, offset in the frame; kVector: first of pool
  std::uint32_t count = 0;  // kVector
  std::int64_t offset = 0;  // of an address
};

struct Actual {
  std::uint32_t offset = 0, bytes = 0;  // in the caller's frame of parameters
};

// Where dynamic shared memory begins, above all that may be static.
constexpr std::uint64_t kDynamicShared = 16 << 20;
constexpr std::uint32_t kNoRegister = UINT32_MAX;
// Where the windows of generic addresses lie: no host pointer looks like this.
constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 62,
                        kLocalWindow = std::uint64_t{1} << 61,
                        kFunctionWindow = std::uint64_t{1} << 60,
                        kWindowBytes = std::uint64_t{1} << 32;

struct Op {
  Code code = Code::k_mov;
  Type type = Type::kU32, from = Type::kU32;  // cvt, set, setp: what it makes, what it takes
  StateSpace space = StateSpace::kGeneric;
  std::uint8_t lanes = 1;                   // .v2, .v4
  std::vector<std::string_view> modifiers;  // of the opcode, without types and spaces
  std::uint32_t guard = kNoRegister;
  bool guard_negated = false;
  std::uint32_t second = kNoRegister;  // "%p1|%p2": the other one
  std::vector<Operand> operands;       // the destination first, where there is one
  std::vector<std::uint32_t> targets;  // of branches: ops
  std::int64_t callee = -1;            // of a call: a function; -1: operands[0] holds it
  std::vector<Actual> arguments;
  Actual result;            // bytes 0: none
  std::uint32_t token = 0;  // of the opcode

  bool Has(std::string_view modifier) const {
    for (std::string_view each : modifiers) {
      if (each == modifier) return true;
    }
    return false;
  }
};

struct CodeFunction {
  std::string name;
  bool is_entry = false;
  bool has_body = false;
  std::vector<Op> ops;
  std::vector<Operand> pool;  // of vectors
  std::uint32_t registers = 0;
  std::uint32_t local_bytes = 0;
  std::uint32_t frame_bytes = 0;  // of .param variables: formals first
  std::vector<Actual> formals;
  Actual result;
};

struct CodeVariable {
  std::uint64_t offset = 0;  // in the program's memory
  std::uint64_t bytes = 0;
};

struct DecodedProgram {
  std::unique_ptr<const device::ptx::Module> module;  // modifiers point into it
  std::vector<CodeFunction> functions;
  std::map<std::string, std::uint32_t, std::less<>> function_by_name;
  std::vector<std::byte> memory;  // module variables, initialised
  std::map<std::string, CodeVariable, std::less<>> variables;
  std::uint64_t shared_bytes = 0;  // static
};

Result<DecodedProgram> Decode(std::string text);

std::string_view Name(Code code);
std::optional<Type> TypeNamed(std::string_view word);  // "u32"

// One instruction without memory, control or neighbours, on raw bits.
struct Arithmetic {
  std::uint64_t a = 0, b = 0, c = 0, d = 0;
  bool carry = false;  // in and out
};
// Nothing where the combination of opcode, type and modifiers is not known.
std::optional<std::uint64_t> Evaluate(const Op& op, Arithmetic& in);
// The atomic operation's new value.
std::optional<std::uint64_t> Combine(const Op& op, std::uint64_t old, std::uint64_t b,
                                     std::uint64_t c);
bool Compare(std::string_view how, Type type, std::uint64_t a, std::uint64_t b, bool* known);
std::uint64_t Normal(Type type, std::uint64_t bits);  // extended to 64 bits as the type says

}  // namespace gpusched::test::ptx
