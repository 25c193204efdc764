// Follows each 64-bit parameter from its load to the first use that tells.
#include "device/cuda/pointer_parameters.h"

#include <map>
#include <optional>
#include <string_view>

namespace gpusched::device {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::TokenIndex;
using ptx::TokenKind;

class Follower {
 public:
  Follower(const Module& module, const Function& entry) : module_(module) {
    pointers_.resize(entry.parameters.size());
    for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
      if (entry.parameters[i].size == 8) parameter_[entry.parameters[i].name] = i;
    }
    ReadList(entry);
  }

  void Follow(const Statement& statement) {
    if (statement.kind != Statement::Kind::kInstruction) return;
    const std::string_view opcode = module_.Text(statement.opcode);
    const TokenIndex destination = statement.opcode + 1;
    if (destination >= statement.end) return;
    const std::string_view target = module_.Text(destination);
    if (opcode.starts_with("ld.param") && opcode.ends_with("64")) {
      if (const auto loaded = FindParameter(statement)) holds_[target] = *loaded;
      return;
    }
    if (opcode.starts_with("cvta.to.")) return MarkSource(statement);
    if (opcode.starts_with("mov.") || opcode.starts_with("add.s64") ||
        opcode.starts_with("add.u64")) {
      if (const auto held = HeldBy(destination + 2, statement)) holds_[target] = *held;
      return;
    }
    MarkAddresses(statement);
  }

  std::vector<bool> Finish() && { return std::move(pointers_); }

 private:
  using Parameter = std::size_t;

  // ".param .u64 .ptr .global .align 4 name": the mark stands in front of its name.
  void ReadList(const Function& entry) {
    bool marked = false;
    for (TokenIndex at = entry.open_parameters; at < entry.close_parameters; ++at) {
      const std::string_view word = module_.Text(at);
      // Directives that follow each other may have been read as one word.
      if (word.starts_with('.') && word.find(".ptr") != std::string_view::npos) marked = true;
      if (module_.IsMark(at, ',')) marked = false;
      const auto named = parameter_.find(word);
      if (marked && named != parameter_.end()) pointers_[named->second] = true;
    }
  }

  std::optional<Parameter> FindParameter(const Statement& statement) const {
    for (TokenIndex at = statement.opcode + 1; at < statement.end; ++at) {
      const auto named = parameter_.find(module_.Text(at));
      if (named == parameter_.end()) continue;
      // Part of a parameter is no address.
      if (at + 1 < statement.end && module_.IsMark(at + 1, '+')) return std::nullopt;
      return named->second;
    }
    return std::nullopt;
  }

  std::optional<Parameter> HeldBy(TokenIndex at, const Statement& statement) const {
    if (at >= statement.end) return std::nullopt;
    const auto held = holds_.find(module_.Text(at));
    if (held == holds_.end()) return std::nullopt;
    return held->second;
  }

  void MarkSource(const Statement& statement) {
    if (const auto held = HeldBy(statement.opcode + 3, statement)) pointers_[*held] = true;
  }

  void MarkAddresses(const Statement& statement) {
    for (TokenIndex at = statement.opcode + 1; at + 1 < statement.end; ++at) {
      if (!module_.IsMark(at, '[')) continue;
      if (const auto held = HeldBy(at + 1, statement)) pointers_[*held] = true;
    }
  }

  const Module& module_;
  std::map<std::string_view, Parameter> parameter_;  // by name
  std::map<std::string_view, Parameter> holds_;      // by register
  std::vector<bool> pointers_;
};

}  // namespace

std::vector<bool> PointerParameters(const Module& module, const Function& entry) {
  Follower follower(module, entry);
  for (std::uint32_t i = entry.first_statement; i < entry.end_statement; ++i) {
    follower.Follow(module.statements()[i]);
  }
  return std::move(follower).Finish();
}

}  // namespace gpusched::device
