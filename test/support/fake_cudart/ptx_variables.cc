// Reads the module's variables in two passes.
#include "support/fake_cudart/ptx_variables.h"

#include <algorithm>
#include <cstring>

namespace gpusched::test::ptx {
namespace {

namespace text = device::ptx;
using text::TokenIndex;
using text::TokenKind;

}  // namespace

Status VariableReader::Read() {
  std::uint64_t bytes = 0;
  for (const text::Variable& variable : module_.variables()) {
    if (variable.bytes > kMostVariableBytes) {
      return Unknown(module_, variable.first, "a variable of that size");
    }
    const std::uint64_t alignment = std::max(variable.alignment, 1u);
    if (variable.space == text::Space::kShared) {
      if (variable.bytes == 0) {
        globals_[std::string(variable.name)] = {Meaning::Kind::kShared, kDynamicShared, 0};
        continue;
      }
      const std::uint64_t offset = RoundUp(program_.shared_bytes, alignment);
      program_.shared_bytes = offset + variable.bytes;
      globals_[std::string(variable.name)] = {Meaning::Kind::kShared, offset, 0};
      continue;
    }
    bytes = RoundUp(bytes, std::max<std::uint64_t>(alignment, 16));
    globals_[std::string(variable.name)] = {Meaning::Kind::kGlobal, bytes, 0};
    program_.variables[std::string(variable.name)] = {.offset = bytes, .bytes = variable.bytes};
    bytes += variable.bytes;
  }
  program_.memory.resize(bytes + 16);
  return Status::Ok();
}

Status VariableReader::Initialize() {
  for (const text::Variable& variable : module_.variables()) {
    if (variable.initializer == 0) continue;
    if (Status status = InitializeOne(variable); !status.ok()) return status;
  }
  return Status::Ok();
}

Status VariableReader::InitializeOne(const text::Variable& variable) {
  const CodeVariable& place = program_.variables[std::string(variable.name)];
  std::uint32_t element = 1;
  for (TokenIndex at = variable.first; at < variable.initializer; ++at) {
    if (const std::uint32_t type = text::TypeBytes(module_.Text(at)); type != 0) element = type;
  }
  std::uint64_t at_byte = 0;
  for (TokenIndex at = variable.initializer; at < variable.end; ++at) {
    const auto kind = module_.tokens()[at].kind;
    if (kind != TokenKind::kNumber && kind != TokenKind::kWord) continue;
    const std::string_view word = module_.Text(at);
    if (word == "generic") continue;
    std::uint64_t value = 0;
    if (kind == TokenKind::kNumber) {
      value = Literal(word).value_or(0);
      if (module_.IsMark(at - 1, '-')) value = 0 - value;
      if (module_.IsMark(at - 1, '+')) {  // "symbol+4"
        at_byte -= element;
        std::uint64_t base = 0;
        std::memcpy(&base, Place(place, at_byte), std::min<std::size_t>(element, 8));
        value += base;
      }
    } else {
      const auto named = globals_.find(word);
      if (named == globals_.end() || element != 8) {
        return Unknown(module_, at, "the initial value '" + std::string(word) + "'");
      }
      value = named->second.kind == Meaning::Kind::kFunction
                  ? kFunctionWindow + named->second.value
                  : reinterpret_cast<std::uint64_t>(program_.memory.data()) + named->second.value;
    }
    if (at_byte + element > place.bytes) return Unknown(module_, at, "so long an initial value");
    std::memcpy(Place(place, at_byte), &value, std::min<std::size_t>(element, 8));
    at_byte += element;
  }
  return Status::Ok();
}

}  // namespace gpusched::test::ptx
