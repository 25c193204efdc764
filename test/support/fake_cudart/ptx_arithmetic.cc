// What each arithmetic opcode computes, on raw bits.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "support/fake_cudart/ptx_code.h"

namespace gpusched::test::ptx {
namespace {

template <typename T>
T As(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

template <typename T>
std::uint64_t Bits(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

// Calls f with a value of the C++ type.
template <typename F>
auto WithType(Type type, F f) {
  switch (type) {
    case Type::kU8:
    case Type::kPredicate: return f(std::uint8_t{});
    case Type::kU16:
    case Type::kF16: return f(std::uint16_t{});
    case Type::kU32: return f(std::uint32_t{});
    case Type::kU64: return f(std::uint64_t{});
    case Type::kS8: return f(std::int8_t{});
    case Type::kS16: return f(std::int16_t{});
    case Type::kS32: return f(std::int32_t{});
    case Type::kS64: return f(std::int64_t{});
    case Type::kF32: return f(float{});
    case Type::kF64: return f(double{});
  }
  return f(std::uint64_t{});
}

bool IsFloat(Type type) { return type == Type::kF32 || type == Type::kF64; }

Type Wider(Type type) {
  switch (type) {
    case Type::kU8: return Type::kU16;
    case Type::kU16: return Type::kU32;
    case Type::kS8: return Type::kS16;
    case Type::kS16: return Type::kS32;
    case Type::kS32: return Type::kS64;
    case Type::kU32:
    case Type::kU64:
    case Type::kS64:
    case Type::kF16:
    case Type::kF32:
    case Type::kF64:
    case Type::kPredicate: break;
  }
  return Type::kU64;
}

template <typename T>
T Saturated(const Op& op, T value) {
  if (!op.Has("sat")) return value;
  return std::isnan(value) ? T(0) : std::clamp(value, T(0), T(1));
}

using Value = std::optional<std::uint64_t>;

template <typename T>
Value FloatMath(const Op& op, T a, T b, T c) {
  switch (op.code) {
    case Code::k_abs: return Bits(std::fabs(a));
    case Code::k_neg: return Bits(-a);
    case Code::k_add: return Bits(Saturated(op, a + b));
    case Code::k_sub: return Bits(Saturated(op, a - b));
    case Code::k_mul: return Bits(Saturated(op, a * b));
    case Code::k_mad:
    case Code::k_fma: return Bits(Saturated(op, std::fma(a, b, c)));
    case Code::k_div: return Bits(a / b);
    case Code::k_min: return Bits(std::fmin(a, b));
    case Code::k_max: return Bits(std::fmax(a, b));
    case Code::k_sqrt: return Bits(std::sqrt(a));
    case Code::k_rsqrt: return Bits(T(1) / std::sqrt(a));
    case Code::k_rcp: return Bits(T(1) / a);
    case Code::k_sin: return Bits(std::sin(a));
    case Code::k_cos: return Bits(std::cos(a));
    case Code::k_ex2: return Bits(std::exp2(a));
    case Code::k_lg2: return Bits(std::log2(a));
    case Code::k_tanh: return Bits(std::tanh(a));
    case Code::k_copysign: return Bits(std::copysign(b, a));
    case Code::k_testp:
      if (op.Has("finite")) return std::isfinite(a);
      if (op.Has("infinite")) return std::isinf(a);
      if (op.Has("number")) return !std::isnan(a);
      if (op.Has("notanumber")) return std::isnan(a);
      if (op.Has("normal")) return std::isnormal(a);
      if (op.Has("subnormal")) return a != 0 && std::isfinite(a) && !std::isnormal(a);
      return std::nullopt;
    default: return std::nullopt;
  }
}

template <typename T>
T HighProduct(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<T>((static_cast<__int128>(a) * b) >> (8 * sizeof(T)));
  } else {
    return static_cast<T>((static_cast<unsigned __int128>(a) * b) >> (8 * sizeof(T)));
  }
}

template <typename T>
Value IntegerMath(const Op& op, T a, T b, T c) {
  using U = std::make_unsigned_t<T>;
  const auto wrap = [](auto value) { return Bits(static_cast<U>(value)); };
  const U ua = static_cast<U>(a), ub = static_cast<U>(b), uc = static_cast<U>(c);
  const std::uint64_t wa = ua, wb = ub;
  switch (op.code) {
    case Code::k_add: return wrap(wa + wb);
    case Code::k_sub: return wrap(wa - wb);
    case Code::k_neg: return wrap(U(0) - ua);
    case Code::k_abs: return wrap(a < 0 ? U(0) - ua : ua);
    case Code::k_min: return Bits(std::min(a, b));
    case Code::k_max: return Bits(std::max(a, b));
    case Code::k_sad: return wrap(uc + static_cast<U>(a < b ? ub - ua : ua - ub));
    // Division by zero gives all ones, as the device does.
    case Code::k_div:
      if (b == 0) return Bits(static_cast<U>(~U(0)));
      if (std::is_signed_v<T> && b == T(-1)) return wrap(U(0) - ua);
      return Bits(static_cast<T>(a / b));
    case Code::k_rem:
      if (b == 0) return Bits(a);
      if (std::is_signed_v<T> && b == T(-1)) return 0;
      return Bits(static_cast<T>(a % b));
    case Code::k_mul: return op.Has("hi") ? Bits(HighProduct(a, b)) : wrap(wa * wb);
    case Code::k_mad:
      return wrap((op.Has("hi") ? static_cast<U>(HighProduct(a, b)) : wa * wb) + uc);
    default: return std::nullopt;
  }
}

// mul.wide and mad.wide: operands of the type, result of twice its size.
std::uint64_t WideProduct(Type type, std::uint64_t a, std::uint64_t b) {
  return Normal(type, a) * Normal(type, b);
}

// 24 bits of each.
std::uint64_t Product24(const Op& op, std::uint64_t a, std::uint64_t b) {
  const auto part = [&](std::uint64_t bits) -> std::int64_t {
    const auto low = static_cast<std::int64_t>(bits & 0xffffff);
    return op.type == Type::kS32 && (low & 0x800000) != 0 ? low - 0x1000000 : low;
  };
  const std::int64_t product = part(a) * part(b);
  return static_cast<std::uint32_t>(op.Has("hi") ? product >> 16 : product);
}

Value WithCarry(const Op& op, Arithmetic& in) {
  const bool wide = BytesOf(op.type) == 8;
  const auto low = [&](std::uint64_t bits) { return wide ? bits : bits & 0xffffffff; };
  unsigned __int128 a = low(in.a), b = low(in.b);
  const bool uses = op.code == Code::k_addc || op.code == Code::k_subc || op.code == Code::k_madc;
  if (op.code == Code::k_mad || op.code == Code::k_madc) {
    const auto product = a * b;
    const unsigned __int128 part = op.Has("hi") ? product >> (wide ? 64 : 32) : product;
    a = low(static_cast<std::uint64_t>(part));
    b = low(in.c);
  }
  const bool subtract = op.code == Code::k_sub || op.code == Code::k_subc;
  const unsigned __int128 result =
      subtract ? a - b - (uses && in.carry ? 1 : 0) : a + b + (uses && in.carry ? 1 : 0);
  if (op.Has("cc")) in.carry = ((result >> (wide ? 64 : 32)) & 1) != 0;
  return low(static_cast<std::uint64_t>(result));
}

std::uint64_t Shift(const Op& op, std::uint64_t a, std::uint64_t by) {
  const unsigned width = 8 * BytesOf(op.type);
  by &= 0xffffffff;
  if (op.code == Code::k_shl) return by >= width ? 0 : a << by;
  const bool is_signed = op.type == Type::kS16 || op.type == Type::kS32 || op.type == Type::kS64;
  if (is_signed) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(Normal(op.type, a)) >>
                                      std::min<std::uint64_t>(by, width - 1));
  }
  return by >= width ? 0 : Normal(op.type, a) >> by;
}

std::uint64_t Funnel(const Op& op, std::uint64_t low, std::uint64_t high, std::uint64_t by) {
  by &= 0xffffffff;
  by = op.Has("clamp") ? std::min<std::uint64_t>(by, 32) : by & 31;
  const std::uint64_t both = (high & 0xffffffff) << 32 | (low & 0xffffffff);
  return static_cast<std::uint32_t>(op.Has("l") ? (both << by) >> 32 : both >> by);
}

std::uint64_t ExtractField(const Op& op, std::uint64_t a, std::uint64_t at, std::uint64_t length) {
  const unsigned width = 8 * BytesOf(op.type);
  at &= 0xff;
  length &= 0xff;
  const bool is_signed = op.type == Type::kS32 || op.type == Type::kS64;
  if (length == 0) return 0;
  a = Normal(op.type, a);
  const std::uint64_t sign_at = std::min<std::uint64_t>(at + length - 1, width - 1);
  const bool ones = is_signed && (a >> sign_at & 1) != 0;
  std::uint64_t field = 0;
  for (unsigned i = 0; i < width; ++i) {
    const bool bit = i < length && at + i < width ? (a >> (at + i) & 1) != 0 : ones;
    field |= std::uint64_t{bit} << i;
  }
  return field;
}

// `b` ones from bit `a` on; each is cut off at 32, or wraps around there.
Value FieldMask(const Op& op, std::uint64_t a, std::uint64_t b) {
  const bool wrap = op.Has("wrap");
  const std::uint64_t at = wrap ? a % 32 : std::min<std::uint64_t>(a & 0xffffffff, 32);
  const std::uint64_t ones = wrap ? b % 32 : std::min<std::uint64_t>(b & 0xffffffff, 32);
  return ((std::uint64_t{1} << ones) - 1) << at & 0xffffffff;
}

std::uint64_t InsertField(const Op& op, std::uint64_t field, std::uint64_t into, std::uint64_t at,
                          std::uint64_t length) {
  const unsigned width = 8 * BytesOf(op.type);
  at &= 0xff;
  length &= 0xff;
  for (unsigned i = 0; i < length && at + i < width; ++i) {
    into = (into & ~(std::uint64_t{1} << (at + i))) | (field >> i & 1) << (at + i);
  }
  return into;
}

std::uint64_t FindLeading(const Op& op, std::uint64_t a) {
  const bool is_signed = op.type == Type::kS32 || op.type == Type::kS64;
  const unsigned width = 8 * BytesOf(op.type);
  a = Normal(op.type, a);
  if (is_signed && static_cast<std::int64_t>(a) < 0) a = ~a;
  if (width == 32) a &= 0xffffffff;
  if (a == 0) return 0xffffffff;
  const auto at = static_cast<std::uint64_t>(63 - std::countl_zero(a));
  return op.Has("shiftamt") ? width - 1 - at : at;
}

std::uint64_t Reverse(std::uint64_t a, unsigned width) {
  std::uint64_t reversed = 0;
  for (unsigned i = 0; i < width; ++i) reversed |= (a >> i & 1) << (width - 1 - i);
  return reversed;
}

Value Permute(const Op& op, std::uint64_t a, std::uint64_t b, std::uint64_t selector) {
  if (!op.modifiers.empty()) return std::nullopt;
  const std::uint64_t bytes = (b & 0xffffffff) << 32 | (a & 0xffffffff);
  std::uint64_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint64_t pick = selector >> (4 * i) & 0xf;
    std::uint64_t byte = bytes >> (8 * (pick & 7)) & 0xff;
    if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

std::uint64_t Lookup3(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t table) {
  std::uint64_t result = 0;
  for (unsigned i = 0; i < 32; ++i) {
    const std::uint64_t row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
    result |= (table >> row & 1) << i;
  }
  return result;
}

double Rounded(const Op& op, double value) {
  if (op.Has("rni")) return std::nearbyint(value);
  if (op.Has("rzi")) return std::trunc(value);
  if (op.Has("rmi")) return std::floor(value);
  if (op.Has("rpi")) return std::ceil(value);
  return value;
}

// Beyond the type's range the nearest value in it; not a number gives zero.
template <typename To>
std::uint64_t ToInteger(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<To>::min())) {
    return Bits(std::numeric_limits<To>::min());
  }
  if (value >= static_cast<double>(std::numeric_limits<To>::max())) {
    return Bits(std::numeric_limits<To>::max());
  }
  return Bits(static_cast<To>(value));
}

template <typename To, typename From>
Value Converted(const Op& op, From value) {
  if constexpr (std::is_floating_point_v<From>) {
    const double rounded = Rounded(op, value);
    if constexpr (std::is_floating_point_v<To>) {
      if (std::is_same_v<From, double> && std::is_same_v<To, float> && op.Has("rz")) {
        return std::nullopt;
      }
      return Bits(Saturated(op, static_cast<To>(rounded)));
    } else {
      return ToInteger<To>(rounded);
    }
  } else if constexpr (std::is_floating_point_v<To>) {
    return Bits(static_cast<To>(value));
  } else {
    if (op.Has("sat")) {
      using Wide = __int128;
      return Bits(static_cast<To>(
          std::clamp<Wide>(value, std::numeric_limits<To>::min(), std::numeric_limits<To>::max())));
    }
    return Bits(static_cast<To>(value));
  }
}

Value Convert(const Op& op, std::uint64_t bits) {
  if (op.type == Type::kF16 || op.from == Type::kF16 || op.type == Type::kPredicate) {
    return std::nullopt;
  }
  return WithType(op.from, [&](auto from) -> Value {
    return WithType(op.type, [&](auto to) -> Value {
      const auto value = As<decltype(from)>(bits);
      const Value converted = Converted<decltype(to)>(op, value);
      // An integer fills its whole register.
      return converted && !IsFloat(op.type) ? Normal(op.type, *converted) : converted;
    });
  });
}

Value SetPredicate(const Op& op, const Arithmetic& in) {
  bool known = false;
  const bool compared =
      Compare(op.modifiers.empty() ? "" : op.modifiers.front(), op.from, in.a, in.b, &known);
  if (!known) return std::nullopt;
  if (op.Has("and")) return compared && in.c != 0;
  if (op.Has("or")) return compared || in.c != 0;
  if (op.modifiers.size() > 1 && op.Has("xor")) return compared != (in.c != 0);
  return compared;
}

}  // namespace

std::uint64_t Normal(Type type, std::uint64_t bits) {
  return WithType(type, [&](auto tag) -> std::uint64_t {
    using T = decltype(tag);
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<T>(bits)));
    } else {
      return Bits(As<T>(bits));
    }
  });
}

bool Compare(std::string_view how, Type type, std::uint64_t a, std::uint64_t b, bool* known) {
  *known = true;
  return WithType(type, [&](auto tag) -> bool {
    using T = decltype(tag);
    const T x = As<T>(a), y = As<T>(b);
    bool unordered = false;
    if constexpr (std::is_floating_point_v<T>) unordered = std::isnan(x) || std::isnan(y);
    // "lo", "ls", "hi", "hs" compare integers without sign.
    const std::uint64_t ua = Bits(x), ub = Bits(y);
    if (how == "eq") return !unordered && x == y;
    if (how == "ne") return !unordered && x != y;
    if (how == "lt") return !unordered && x < y;
    if (how == "le") return !unordered && x <= y;
    if (how == "gt") return !unordered && x > y;
    if (how == "ge") return !unordered && x >= y;
    if (how == "lo") return ua < ub;
    if (how == "ls") return ua <= ub;
    if (how == "hi") return ua > ub;
    if (how == "hs") return ua >= ub;
    if (how == "equ") return unordered || x == y;
    if (how == "neu") return unordered || x != y;
    if (how == "ltu") return unordered || x < y;
    if (how == "leu") return unordered || x <= y;
    if (how == "gtu") return unordered || x > y;
    if (how == "geu") return unordered || x >= y;
    if (how == "num") return !unordered;
    if (how == "nan") return unordered;
    *known = false;
    return false;
  });
}

std::optional<std::uint64_t> Combine(const Op& op, std::uint64_t old, std::uint64_t b,
                                     std::uint64_t c) {
  if (op.Has("exch")) return b;
  if (op.Has("cas")) return Normal(op.type, old) == Normal(op.type, b) ? c : old;
  if (op.Has("and")) return old & b;
  if (op.Has("or")) return old | b;
  if (op.Has("xor")) return old ^ b;
  const std::uint64_t have = Normal(op.type, old), most = Normal(op.type, b);
  if (op.Has("inc")) return have >= most ? 0 : have + 1;
  if (op.Has("dec")) return have == 0 || have > most ? most : have - 1;
  Op plain;
  plain.type = op.type;
  if (op.Has("add")) {
    plain.code = Code::k_add;
  } else if (op.Has("min")) {
    plain.code = Code::k_min;
  } else if (op.Has("max")) {
    plain.code = Code::k_max;
  } else {
    return std::nullopt;
  }
  Arithmetic in{.a = old, .b = b};
  return Evaluate(plain, in);
}

std::optional<std::uint64_t> Evaluate(const Op& op, Arithmetic& in) {
  const unsigned width = 8 * BytesOf(op.type);
  switch (op.code) {
    case Code::k_mov: return in.a;
    case Code::k_and: return in.a & in.b;
    case Code::k_or: return in.a | in.b;
    case Code::k_xor: return in.a ^ in.b;
    case Code::k_not: return op.type == Type::kPredicate ? in.a ^ 1 : ~in.a;
    case Code::k_cnot: return Normal(op.type, in.a) == 0 ? 1 : 0;
    case Code::k_lop3:
      return op.modifiers.empty() ? Value(Lookup3(in.a, in.b, in.c, in.d)) : Value();
    case Code::k_shl:
    case Code::k_shr: return Shift(op, in.a, in.b);
    case Code::k_shf: return Funnel(op, in.a, in.b, in.c);
    case Code::k_bfe: return ExtractField(op, in.a, in.b, in.c);
    case Code::k_bfi: return InsertField(op, in.a, in.b, in.c, in.d);
    case Code::k_bfind: return FindLeading(op, in.a);
    case Code::k_bmsk: return FieldMask(op, in.a, in.b);
    case Code::k_brev: return Reverse(in.a, width);
    case Code::k_popc: return std::popcount(Normal(op.type, in.a));
    case Code::k_clz: return std::countl_zero(Normal(op.type, in.a)) - (64 - width);
    case Code::k_prmt: return Permute(op, in.a, in.b, in.c);
    case Code::k_cvt: return Convert(op, in.a);
    case Code::k_setp: return SetPredicate(op, in);
    case Code::k_set: {
      const Value holds = SetPredicate(op, in);
      if (!holds) return std::nullopt;
      if (op.type == Type::kF32) return *holds != 0 ? Bits(1.0f) : 0;
      return *holds != 0 ? 0xffffffff : 0;
    }
    case Code::k_selp: return in.c != 0 ? in.a : in.b;
    case Code::k_slct: {
      const bool least = op.from == Type::kF32
                             ? As<float>(in.c) >= 0
                             : static_cast<std::int64_t>(Normal(Type::kS32, in.c)) >= 0;
      return least ? in.a : in.b;
    }
    case Code::k_mul24: return Product24(op, in.a, in.b);
    case Code::k_mad24: return Product24(op, in.a, in.b) + in.c;
    case Code::k_addc:
    case Code::k_subc:
    case Code::k_madc: return WithCarry(op, in);
    default: break;
  }
  if (op.Has("cc")) return WithCarry(op, in);
  if (op.Has("wide") && op.code == Code::k_mul) return WideProduct(op.type, in.a, in.b);
  if (op.Has("wide") && op.code == Code::k_mad) {
    const std::uint64_t sum = WideProduct(op.type, in.a, in.b) + in.c;
    return Normal(Wider(op.type), sum);
  }
  if (op.type == Type::kF16 || op.type == Type::kPredicate) return std::nullopt;
  return WithType(op.type, [&](auto tag) -> Value {
    using T = decltype(tag);
    const T a = As<T>(in.a), b = As<T>(in.b), c = As<T>(in.c);
    if constexpr (std::is_floating_point_v<T>) {
      return FloatMath(op, a, b, c);
    } else {
      return IntegerMath(op, a, b, c);
    }
  });
}

}  // namespace gpusched::test::ptx
