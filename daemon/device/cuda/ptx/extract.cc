// Copies out one entry with the functions and variables it reaches, without debug information.
#include <algorithm>
#include <utility>

#include "device/cuda/ptx/rewrite.h"
#include "gpusched/reasons.h"

namespace gpusched::device::ptx {
namespace {

struct Piece {
  TokenIndex first = 0, end = 0;
  const Function* function = nullptr;
};

Status UnknownEntry(const Module& module, std::string_view entry) {
  constexpr std::size_t kMostListed = 50;
  std::string known;
  std::size_t listed = 0;
  for (const Function& function : module.functions()) {
    if (!function.is_entry || listed++ >= kMostListed) continue;
    known += (known.empty() ? "" : ", ") + std::string(function.name);
  }
  return {StatusCode::kNotFound, reason::kUnknownKernel,
          "there is no kernel '" + std::string(entry) +
              "'; the module has: " + (known.empty() ? "none" : known)};
}

// [first, end) in tokens, as it stands in the text.
void Append(const Module& module, TokenIndex first, TokenIndex end, std::string& out) {
  if (first == end) return;
  const Token& last = module.tokens()[end - 1];
  const std::uint32_t begin = module.tokens()[first].begin;
  out.append(module.text().substr(begin, last.begin + last.size - begin));
  out.push_back('\n');
}

// Line numbers refer to sections that are left behind.
void AppendFunction(const Module& module, const Function& function, std::string& out) {
  TokenIndex from = function.first;
  for (std::uint32_t i = function.first_statement; i < function.end_statement; ++i) {
    const Statement& statement = module.statements()[i];
    if (statement.kind != Statement::Kind::kDirective || module.Text(statement.first) != ".loc") {
      continue;
    }
    Append(module, from, statement.first, out);
    from = statement.end;
  }
  Append(module, from, function.end, out);
}

}  // namespace

Result<std::string> ExtractEntry(const Module& module, std::string_view name) {
  const auto entry = module.FindFunction(name);
  if (!entry || !module.functions()[*entry].is_entry || !module.functions()[*entry].has_body) {
    return UnknownEntry(module, name);
  }
  const Reach reach = Classification(module).reach(*entry);
  std::vector<bool> kept(module.functions().size(), false);
  for (std::uint32_t i : reach.functions) kept[i] = true;

  std::vector<Piece> pieces;
  for (std::uint32_t i : reach.variables) {
    const Variable& variable = module.variables()[i];
    pieces.push_back({.first = variable.first, .end = variable.end});
  }
  for (const Function& function : module.functions()) {
    // A declaration goes with the body of its name.
    const auto named = module.FindFunction(function.name);
    if (!named || !kept[*named]) continue;
    pieces.push_back({.first = function.first, .end = function.end, .function = &function});
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.first < b.first; });

  std::string text(module.text().substr(0, module.header_end()));
  text.push_back('\n');
  for (const Piece& piece : pieces) {
    if (piece.function != nullptr) {
      AppendFunction(module, *piece.function, text);
    } else {
      Append(module, piece.first, piece.end, text);
    }
  }
  return text;
}

}  // namespace gpusched::device::ptx
