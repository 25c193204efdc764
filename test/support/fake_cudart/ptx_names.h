// What the words of a PTX text are called in code, and what names stand for while it is decoded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "device/cuda/ptx/module.h"
#include "support/fake_cudart/ptx_code.h"

namespace gpusched::test::ptx {

std::optional<Code> CodeNamed(std::string_view word);
std::optional<StateSpace> SpaceNamed(std::string_view word);
std::optional<Special> SpecialNamed(std::string_view word);
// "5", "0x1F", "0f3F800000", "0d3FF0000000000000".
std::optional<std::uint64_t> Literal(std::string_view word);

// Of a hand-written or compiled test kernel; bounds what a wrong text can ask for.
constexpr std::uint64_t kMostVariableBytes = 64 << 20;

// UNIMPLEMENTED, with the place.
Status Unknown(const device::ptx::Module& module, device::ptx::TokenIndex at,
               std::string_view what);

constexpr std::uint64_t RoundUp(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// A name's meaning within a function.
struct Meaning {
  enum class Kind : std::uint8_t { kRegister, kParam, kLocal, kShared, kGlobal, kFunction };
  Kind kind = Kind::kRegister;
  std::uint64_t value = 0;  // register, offset, or index
  std::uint32_t bytes = 0;
};
using Meanings = std::map<std::string, Meaning, std::less<>>;

}  // namespace gpusched::test::ptx
