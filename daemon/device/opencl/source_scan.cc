// Names the functions of a source, looks at their loops, and follows who calls whom.
#include "device/opencl/source_scan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "device/opencl/cut_prelude.h"
#include "device/opencl/source_tokens.h"

namespace gpusched::device {
namespace {

using Tokens = std::span<const SourceToken>;

template <typename Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool Is(Tokens tokens, std::size_t at, std::string_view text) {
  return at < tokens.size() && tokens[at].text == text;
}

// The place behind the bracket that closes the one at `at`, or the end.
std::size_t Behind(Tokens tokens, std::size_t at) {
  int depth = 0;
  for (; at < tokens.size(); ++at) {
    const std::string& text = tokens[at].text;
    if (text == "(" || text == "{" || text == "[") ++depth;
    if ((text == ")" || text == "}" || text == "]") && --depth == 0) return at + 1;
  }
  return tokens.size();
}

// The parts of a bracket's content, split at `separator` outside inner brackets.
std::vector<Tokens> Split(Tokens content, std::string_view separator) {
  std::vector<Tokens> parts;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < content.size();) {
    const std::string& text = content[at].text;
    if (text == "(" || text == "{" || text == "[") {
      at = Behind(content, at);
      continue;
    }
    if (text == separator) {
      parts.push_back(content.subspan(begin, at - begin));
      begin = at + 1;
    }
    ++at;
  }
  parts.push_back(content.subspan(std::min(begin, content.size())));
  return parts;
}

Tokens Inside(Tokens tokens, std::size_t open) {
  const std::size_t behind = Behind(tokens, open);
  return behind <= open + 1 ? Tokens() : tokens.subspan(open + 1, behind - open - 2);
}

// A function or a macro.
struct Piece {
  std::string name;
  Tokens tokens;  // parameters and body
  Tokens body;
  bool polls = false;
  std::string waits;
};

// The name in front of the last parameter list before a body: "f" of "void f(int x)
// __attribute__((..))".
std::optional<Piece> FunctionBefore(Tokens code, std::size_t from, std::size_t brace) {
  std::optional<std::size_t> open;
  for (std::size_t at = from; at < brace; ++at) {
    if (!Is(code, at, "(")) continue;
    const bool of_attribute = at > from && code[at - 1].text.starts_with("__attribute");
    if (!of_attribute && at > from && IsName(code[at - 1])) open = at;
    at = Behind(code, at) - 1;
  }
  if (!open) return std::nullopt;
  const std::size_t end = Behind(code, brace);
  return Piece{.name = code[*open - 1].text,
               .tokens = code.subspan(*open, end - *open),
               .body = code.subspan(brace, end - brace),
               .waits = {}};
}

std::vector<Piece> Functions(Tokens code) {
  std::vector<Piece> functions;
  std::size_t from = 0;  // of the declaration at hand
  for (std::size_t at = 0; at < code.size();) {
    if (Is(code, at, "{")) {
      if (auto function = FunctionBefore(code, from, at)) functions.push_back(*std::move(function));
      at = from = Behind(code, at);
    } else if (Is(code, at, "(") || Is(code, at, "[")) {
      at = Behind(code, at);
    } else {
      if (Is(code, at, ";")) from = at + 1;
      ++at;
    }
  }
  return functions;
}

std::vector<Piece> Macros(const std::vector<DirectiveLine>& directives) {
  std::vector<Piece> macros;
  for (const DirectiveLine& line : directives) {
    if (line[0].text != "define" || line.size() < 2) continue;
    const Tokens rest = Tokens(line).subspan(2);
    macros.push_back({.name = line[1].text, .tokens = rest, .body = rest, .waits = {}});
  }
  return macros;
}

// What is known of names while the pieces are looked at.
struct Known {
  std::set<std::string, std::less<>> volatiles{"volatile"};  // and types made of it
  std::set<std::string, std::less<>> polling;                // functions and macros
};

// The name a declaration with `volatile` at `at` declares: the last one before it ends.
std::string DeclaredAfter(Tokens tokens, std::size_t at) {
  std::string name;
  for (; at < tokens.size(); ++at) {
    if (IsName(tokens[at])) name = tokens[at].text;
    if (Contains(std::array{",", ")", ";", "=", "["}, std::string_view(tokens[at].text))) break;
  }
  return name;
}

std::set<std::string, std::less<>> VolatilesOf(Tokens tokens, const Known& known) {
  // Words that end a cast's type name rather than a declaration.
  static constexpr std::array<std::string_view, 16> kTypes{
      "int",   "uint",   "long",   "ulong", "float",    "double",  "char",     "uchar",
      "short", "ushort", "global", "local", "__global", "__local", "unsigned", "volatile"};
  std::set<std::string, std::less<>> names = known.volatiles;
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    if (!known.volatiles.contains(tokens[at].text)) continue;
    const std::string name = DeclaredAfter(tokens, at);
    if (!Contains(kTypes, name)) names.insert(name);
  }
  return names;
}

bool IsAtomic(std::string_view name) {
  return name.starts_with("atomic_") || name.starts_with("atom_");
}

// A literal, perhaps with a sign: 0, -1, ~0u, (0).
bool IsLiteral(Tokens argument, bool& zero) {
  bool number = false;
  zero = true;
  for (const SourceToken& token : argument) {
    if (IsNumber(token)) {
      number = true;
      if (token.text[0] != '0' || token.text.find_first_of("123456789") != std::string::npos)
        zero = false;
    } else if (token.text == "~") {
      zero = false;
    } else if (token.text != "-" && token.text != "(" && token.text != ")") {
      return false;
    }
  }
  return number;
}

enum class Atomic { kChanges, kReads, kRetries };

// Whether an atomic call may only look, changes something, or retries an exchange.
Atomic KindOf(std::string_view name, const std::vector<Tokens>& arguments) {
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  if (has("load") || has("test_and_set") || has("xchg") || has("exchange")) {
    if (!has("cmpxchg") && !has("compare")) return Atomic::kReads;
    bool zero = false;
    const bool fixed = arguments.size() < 3 || IsLiteral(arguments[1], zero) ||
                       std::equal(arguments[1].begin(), arguments[1].end(), arguments[2].begin(),
                                  arguments[2].end(),
                                  [](const auto& a, const auto& b) { return a.text == b.text; });
    return fixed ? Atomic::kReads : Atomic::kRetries;
  }
  bool zero = false;
  if (arguments.size() < 2 || !IsLiteral(arguments[1], zero)) return Atomic::kChanges;
  const bool keeps_with_any = has("and") || has("min") || has("max");
  return zero || keeps_with_any ? Atomic::kReads : Atomic::kChanges;
}

struct Looks {
  bool reads = false;      // an atomic that may only look, or what polls
  bool volatiles = false;  // a volatile
  bool retries = false;
};

Looks LooksOf(Tokens tokens, const Known& known,
              const std::set<std::string, std::less<>>& volatiles) {
  Looks looks;
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    const std::string& text = tokens[at].text;
    if (IsAtomic(text) && text.find("fence") == text.npos && Is(tokens, at + 1, "(")) {
      const std::vector<Tokens> arguments = Split(Inside(tokens, at + 1), ",");
      const Atomic kind = KindOf(text, arguments);
      looks.reads |= kind == Atomic::kReads;
      looks.retries |= kind == Atomic::kRetries;
      at += 1 + arguments[0].size();  // that its target is volatile is no news
    } else if (known.polling.contains(text) || text.find("mem_fence") != text.npos ||
               text == "atomic_work_item_fence") {
      looks.reads = true;
    } else if (volatiles.contains(text)) {
      looks.volatiles = true;
    }
  }
  return looks;
}

bool Polls(const Looks& looks) { return looks.reads || (looks.volatiles && !looks.retries); }

// The place behind the statement that begins at `at`.
std::size_t BehindStatement(Tokens tokens, std::size_t at) {
  while (at < tokens.size()) {
    if (Is(tokens, at, "{") || Is(tokens, at, ";")) {
      at = Is(tokens, at, "{") ? Behind(tokens, at) : at + 1;
      if (!Is(tokens, at, "else")) return at;
    }
    at = Is(tokens, at, "(") || Is(tokens, at, "[") ? Behind(tokens, at) : at + 1;
  }
  return at;
}

// A wait without a body: "while (flag[i] == 0);" reads memory and changes nothing.
bool OnlyLooks(Tokens condition) {
  bool memory = false;
  for (std::size_t at = 0; at < condition.size(); ++at) {
    const std::string& text = condition[at].text;
    memory = memory || text == "[" || text == "*" || text == "(";
    const bool doubled = Is(condition, at + 1, text);
    if ((text == "+" || text == "-") && doubled) return false;
    const bool compares = at > 0 && Contains(std::array{"=", "!", "<", ">"},
                                             std::string_view(condition[at - 1].text));
    if (text == "=" && !doubled && !compares) return false;
  }
  return memory;
}

// The loop at `at` may wait for what others do.
bool MayWait(Tokens tokens, std::size_t at, const Known& known,
             const std::set<std::string, std::less<>>& volatiles) {
  const auto polls = [&](Tokens part) { return Polls(LooksOf(part, known, volatiles)); };
  if (Is(tokens, at, "do")) {
    std::size_t end = BehindStatement(tokens, at + 1);
    if (Is(tokens, end, "while")) end = BehindStatement(tokens, end);
    return polls(tokens.subspan(at, end - at));
  }
  if (!Is(tokens, at + 1, "(")) return false;
  const Tokens head = Inside(tokens, at + 1);
  const std::size_t body = Behind(tokens, at + 1);
  const std::size_t end = BehindStatement(tokens, body);
  if (Is(tokens, at, "for")) {
    const std::vector<Tokens> parts = Split(head, ";");
    const bool counted = parts.size() == 3 && !parts[1].empty() && !parts[2].empty();
    if (counted) return polls(parts[1]);
  }
  if (Is(tokens, body, ";") && OnlyLooks(head)) return true;
  return polls(tokens.subspan(at + 1, end - at - 1));
}

void LookAt(Piece& piece, const Known& known) {
  const auto volatiles = VolatilesOf(piece.tokens, known);
  const Tokens body = piece.body;
  std::set<std::size_t> tails;  // of do-loops: looked at with their heads
  for (std::size_t at = 0; at < body.size() && piece.waits.empty(); ++at) {
    const std::string& text = body[at].text;
    if (text == "do") tails.insert(BehindStatement(body, at + 1));
    const bool loop = text == "for" || text == "do" || (text == "while" && !tails.contains(at));
    const bool waits = loop ? MayWait(body, at, known, volatiles) : text == "goto" && piece.polls;
    if (!waits) continue;
    piece.waits =
        "a block may wait for another in the loop at line " + std::to_string(body[at].line);
  }
}

bool Names(const Piece& piece, std::string_view name) {
  return std::any_of(piece.tokens.begin(), piece.tokens.end(),
                     [name](const SourceToken& token) { return token.text == name; });
}

// Until nothing changes: whoever names a piece of which `told` holds is told too.
template <typename Told, typename Tell>
void Spread(std::vector<Piece>& pieces, Told told, Tell tell) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Piece& from : pieces) {
      if (!told(from)) continue;
      for (Piece& to : pieces) {
        if (told(to) || !Names(to, from.name)) continue;
        tell(from, to);
        changed = true;
      }
    }
  }
}

std::map<std::string, std::string> Waits(const SourceTokens& source) {
  std::vector<Piece> pieces = Functions(source.code);
  std::vector<Piece> macros = Macros(source.directives);
  std::move(macros.begin(), macros.end(), std::back_inserter(pieces));
  Known known;
  for (std::size_t at = 0; at < source.code.size(); ++at) {
    if (Is(source.code, at, "typedef") && Is(source.code, at + 1, "volatile"))
      known.volatiles.insert(DeclaredAfter(source.code, at + 1));
  }
  for (Piece& piece : pieces) {
    piece.polls = Polls(LooksOf(piece.body, known, VolatilesOf(piece.tokens, known)));
  }
  // A kernel's own polls are looked at loop by loop; a helper's count where it is called.
  Spread(
      pieces, [](const Piece& piece) { return piece.polls; },
      [](const Piece&, Piece& to) { to.polls = true; });
  for (const Piece& piece : pieces) {
    if (piece.polls) known.polling.insert(piece.name);
  }
  for (Piece& piece : pieces) LookAt(piece, known);
  Spread(
      pieces, [](const Piece& piece) { return !piece.waits.empty(); },
      [](const Piece& from, Piece& to) { to.waits = from.waits; });
  std::map<std::string, std::string> waits;
  for (const Piece& piece : pieces) {
    if (!piece.waits.empty()) waits.emplace(piece.name, piece.waits);
  }
  return waits;
}

std::string AtLine(const SourceToken& token) {
  return " (line " + std::to_string(token.line) + ")";
}

// A directive that undoes a renaming, or to which it makes a difference.
std::string Undone(const DirectiveLine& line) {
  const std::string& what = line[0].text;
  const bool defines = what == "define";
  for (std::size_t at = 1; at < line.size() && !(defines && at > 1); ++at) {
    if (!Contains(RenamedFunctions(), line[at].text)) continue;
    return "it redefines or tests for " + line[at].text + AtLine(line[at]);
  }
  const bool stacks = std::any_of(line.begin(), line.end(), [](const SourceToken& token) {
    return token.text == "push_macro" || token.text == "pop_macro";
  });
  return stacks ? "it saves or restores macros" + AtLine(line[0]) : "";
}

std::string ReadsFile(const SourceTokens& source) {
  for (const DirectiveLine& line : source.directives) {
    const std::string& what = line[0].text;
    if (what == "include" || what == "include_next" || what == "import" || what == "embed") {
      return "#" + what + AtLine(line[0]);
    }
  }
  return "";
}

std::string NoPrelude(const SourceTokens& source) {
  for (const DirectiveLine& line : source.directives) {
    if (std::string why = Undone(line); !why.empty()) return why;
  }
  const auto check = [](Tokens tokens) -> std::string {
    for (const SourceToken& token : tokens) {
      if (token.text == "enqueue_kernel") {
        return "it starts kernels of its own (enqueue_kernel)" + AtLine(token);
      }
      if (Contains(std::array{"asm", "__asm", "__asm__"}, std::string_view(token.text))) {
        return "it has inline assembly" + AtLine(token);
      }
      if (token.text == "_Pragma") return "it may save or restore macros" + AtLine(token);
    }
    return "";
  };
  std::string why = check(source.code);
  for (const DirectiveLine& line : source.directives) {
    if (why.empty()) why = check(line);
  }
  return why;
}

}  // namespace

SourceScan Scan(std::string_view source) {
  const SourceTokens tokens = Tokenize(source);
  SourceScan scan{.reads_file = ReadsFile(tokens),
                  .no_prelude = NoPrelude(tokens),
                  .waits = Waits(tokens),
                  .functions = {}};
  for (const Piece& function : Functions(tokens.code)) scan.functions.insert(function.name);
  return scan;
}

std::string SourceScan::WaitOf(const std::string& name) const {
  if (const auto found = waits.find(name); found != waits.end()) return found->second;
  return functions.contains(name) || waits.empty() ? "" : waits.begin()->second;
}

}  // namespace gpusched::device
