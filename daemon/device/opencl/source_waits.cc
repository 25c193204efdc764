// Names the functions of a source, looks at their loops, and follows who calls whom.
//
// Nobody bounds how deep a source nests: whatever is asked of a range is kept for every place of
// the code beforehand (where a bracket closes, where a statement ends, how much was seen so far).
#include "device/opencl/source_waits.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "device/opencl/source_macros.h"

namespace gpusched::device {
namespace {

// A loop's head longer than this is not looked at for what it changes.
constexpr std::size_t kLongestHead = 1'024;
// Names in front of one list of arguments: the alternatives of a macro.
constexpr std::size_t kMostAlternatives = 8;

template <typename Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool Opens(std::string_view text) { return text == "(" || text == "{" || text == "["; }
bool Closes(std::string_view text) { return text == ")" || text == "}" || text == "]"; }

// Places are numbers of tokens; a range ends before its end.
struct Range {
  std::size_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
  std::size_t size() const { return empty() ? 0 : end - begin; }
};

// The code, and what follows from each place of it.
class Code {
 public:
  explicit Code(const std::vector<SourceToken>& tokens)
      : tokens_(tokens),
        behind_(tokens.size() + 1, Short(tokens.size())),
        statement_end_(tokens.size() + 1, Short(tokens.size())),
        declared_(tokens.size() + 1, kNone) {
    std::vector<std::size_t> open;
    for (std::size_t at = 0; at < size(); ++at) {
      if (Opens(text(at))) open.push_back(at);
      if (!Closes(text(at)) || open.empty()) continue;
      behind_[open.back()] = Short(at + 1);
      open.pop_back();
    }
    for (std::size_t at = size(); at-- > 0;) {
      statement_end_[at] = Short(EndFrom(at));
      declared_[at] = DeclaredFrom(at);
    }
  }

  std::size_t size() const { return tokens_.size(); }
  const SourceToken& token(std::size_t at) const { return tokens_[at]; }
  std::string_view text(std::size_t at) const { return tokens_[at].text; }
  bool Is(std::size_t at, std::string_view what) const { return at < size() && text(at) == what; }
  bool IsNameAt(std::size_t at) const { return at < size() && IsName(tokens_[at]); }

  // The place behind the bracket that closes the one at `at`, or the end.
  std::size_t Behind(std::size_t at) const { return behind_[std::min(at, size())]; }
  Range Inside(std::size_t open) const {
    const std::size_t behind = Behind(open);
    const bool closed = behind > open + 1 && Closes(text(behind - 1));
    return {open + 1, closed ? behind - 1 : behind};
  }
  // The place behind the statement that begins at `at`.
  std::size_t BehindStatement(std::size_t at) const { return statement_end_[std::min(at, size())]; }
  // The name that a declaration with a qualifier at `at` declares: the last before it ends.
  std::string_view DeclaredAfter(std::size_t at) const {
    return declared_[at] == kNone ? std::string_view() : text(declared_[at]);
  }

  // The parts of a range, split at `separator` outside inner brackets; no more than `most` of them.
  std::vector<Range> Split(Range range, std::string_view separator, std::size_t most) const {
    std::vector<Range> parts;
    std::size_t begin = range.begin;
    for (std::size_t at = range.begin; at < range.end && parts.size() < most;) {
      if (Opens(text(at))) {
        at = Behind(at);
        continue;
      }
      if (text(at) == separator) {
        parts.push_back({begin, at});
        begin = at + 1;
      }
      ++at;
    }
    if (parts.size() < most) parts.push_back({std::min(begin, range.end), range.end});
    return parts;
  }

 private:
  // A source has far fewer tokens, and there are as many of these.
  using ShortPlace = std::uint32_t;
  static constexpr ShortPlace kNone = static_cast<ShortPlace>(-1);
  static ShortPlace Short(std::size_t place) { return static_cast<ShortPlace>(place); }

  std::size_t EndFrom(std::size_t at) const {
    const std::string_view here = text(at);
    if (here == "(" || here == "[") return statement_end_[behind_[at]];
    if (here != "{" && here != ";") return statement_end_[at + 1];
    const std::size_t end = here == "{" ? behind_[at] : at + 1;
    return Is(end, "else") ? statement_end_[end + 1] : end;
  }

  ShortPlace DeclaredFrom(std::size_t at) const {
    if (Contains(std::array{",", ")", ";", "=", "["}, text(at))) return kNone;
    if (declared_[at + 1] != kNone) return declared_[at + 1];
    return IsNameAt(at) ? Short(at) : kNone;
  }

  const std::vector<SourceToken>& tokens_;
  std::vector<ShortPlace> behind_, statement_end_, declared_;
};

struct Function {
  std::string_view name;
  Range all;  // parameters and body
  Range body;
  bool polls = false;
  std::string waits;
};

// The function whose body begins at `brace`, where its declaration begins at `from`: it has the
// name in front of the last list of parameters, "f" of "void f(int x) __attribute__((..))".
bool FunctionAt(const Code& code, std::size_t from, std::size_t brace, Function& function) {
  std::size_t open = brace;
  for (std::size_t at = from; at < brace; ++at) {
    if (!code.Is(at, "(")) continue;
    const bool of_attribute = at > from && code.text(at - 1).starts_with("__attribute");
    if (!of_attribute && at > from && code.IsNameAt(at - 1)) open = at;
    at = code.Behind(at) - 1;
  }
  if (open == brace) return false;
  const std::size_t end = code.Behind(brace);
  function = {.name = code.text(open - 1), .all = {open, end}, .body = {brace, end}, .waits = {}};
  return true;
}

// Words that end a cast's type name rather than a declaration.
bool IsTypeWord(std::string_view name) {
  static constexpr std::array<std::string_view, 16> kTypes{
      "int",   "uint",   "long",   "ulong", "float",    "double",  "char",     "uchar",
      "short", "ushort", "global", "local", "__global", "__local", "unsigned", "volatile"};
  return name.empty() || Contains(kTypes, name);
}

using NameSet = std::unordered_set<std::string_view>;

// The functions, and the names that are volatile in all of them: types, and members of structs.
std::vector<Function> Functions(const Code& code, NameSet& volatiles) {
  std::vector<Function> functions;
  const auto note = [&](std::size_t at) {
    if (code.Is(at, "volatile") && !IsTypeWord(code.DeclaredAfter(at))) {
      volatiles.insert(code.DeclaredAfter(at));
    }
  };
  std::size_t from = 0;  // of the declaration at hand
  for (std::size_t at = 0; at < code.size();) {
    if (code.Is(at, "{")) {
      const std::size_t end = code.Behind(at);
      Function function;
      if (FunctionAt(code, from, at, function)) {
        functions.push_back(std::move(function));
      } else {
        for (; at < end; ++at) note(at);
      }
      at = from = end;
    } else if (code.Is(at, "(") || code.Is(at, "[")) {
      at = code.Behind(at);
    } else {
      note(at);
      if (code.Is(at, ";")) from = at + 1;
      ++at;
    }
  }
  return functions;
}

bool IsAtomic(std::string_view name) {
  return (name.starts_with("atomic_") || name.starts_with("atom_")) &&
         name.find("fence") == name.npos;
}
bool IsFence(std::string_view name) {
  return name.find("mem_fence") != name.npos || name == "atomic_work_item_fence";
}

// A literal, perhaps with a sign: 0, -1, ~0u, (0). Of several, which are what a macro may be, any.
bool IsLiteral(const Code& code, Range argument, bool& zero) {
  int numbers = 0;
  bool inverted = false;
  zero = false;
  for (std::size_t at = argument.begin; at < argument.end; ++at) {
    const SourceToken& token = code.token(at);
    if (IsNumber(token)) {
      ++numbers;
      zero |= token.text[0] == '0' && token.text.find_first_of("123456789") == token.text.npos;
    } else if (token.text == "~") {
      inverted = true;
    } else if (token.text != "-" && token.text != "(" && token.text != ")" && !token.stays) {
      return false;
    }
  }
  if (inverted) zero = numbers > 1;
  return numbers > 0;
}

bool SameText(const Code& code, Range a, Range b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (code.text(a.begin + i) != code.text(b.begin + i)) return false;
  }
  return true;
}

enum class Atomic : std::uint8_t { kChanges, kReads, kRetries };

// Whether an atomic call may only look, changes something, or retries an exchange.
Atomic KindOf(const Code& code, std::string_view name, const std::vector<Range>& arguments) {
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  bool zero = false;
  if (has("load") || has("test_and_set") || has("xchg") || has("exchange")) {
    if (!has("cmpxchg") && !has("compare")) return Atomic::kReads;
    const bool fixed = arguments.size() < 3 || IsLiteral(code, arguments[1], zero) ||
                       SameText(code, arguments[1], arguments[2]);
    return fixed ? Atomic::kReads : Atomic::kRetries;
  }
  if (arguments.size() < 2 || !IsLiteral(code, arguments[1], zero)) return Atomic::kChanges;
  const bool keeps_with_any = has("and") || has("min") || has("max");
  return zero || keeps_with_any ? Atomic::kReads : Atomic::kChanges;
}

// What of a range counts for waiting: how often each was seen from the beginning of the code on.
struct Seen {
  std::uint32_t reads = 0;      // an atomic that may only look, a fence, a call of what polls
  std::uint32_t volatiles = 0;  // a volatile
  std::uint32_t retries = 0;    // of an exchange
};

bool Polls(const Seen& seen) { return seen.reads > 0 || (seen.volatiles > 0 && seen.retries == 0); }

class Looker {
 public:
  Looker(const Code& code, const NameSet& volatiles)
      : code_(code), volatiles_(volatiles), seen_(code.size() + 1) {}

  // Looks at a function, where `polling` are known to poll. Functions come in their order.
  void LookAt(const Function& function, const NameSet& polling) {
    NameSet own;
    for (std::size_t at = function.all.begin; at < function.all.end; ++at) {
      if (IsVolatile(code_.text(at), own) && !IsTypeWord(code_.DeclaredAfter(at))) {
        own.insert(code_.DeclaredAfter(at));
      }
    }
    Seen seen;
    std::size_t target_end = 0;  // of an atomic's first argument: that it is volatile is no news
    for (std::size_t at = function.body.begin; at < function.body.end; ++at) {
      const std::string_view text = code_.text(at);
      const std::size_t open = IsAtomic(text) ? ArgumentsOf(at) : 0;
      if (at < target_end) {
        // Looked at with its atomic.
      } else if (open != 0) {
        const std::vector<Range> arguments = code_.Split(code_.Inside(open), ",", 4);
        const Atomic kind = KindOf(code_, text, arguments);
        seen.reads += kind == Atomic::kReads;
        seen.retries += kind == Atomic::kRetries;
        // Of several names before one list each is looked at; the last one passes the target.
        if (open == at + 1) target_end = arguments[0].end;
      } else if (polling.contains(text) || IsFence(text)) {
        ++seen.reads;
      } else if (IsVolatile(text, own)) {
        ++seen.volatiles;
      }
      seen_[at + 1] = seen;
    }
    seen_[function.body.begin] = {};
  }

  // Of a range within a body that was looked at.
  bool PollsIn(Range range) const {
    if (range.empty()) return false;
    const Seen &from = seen_[range.begin], &to = seen_[range.end];
    return Polls({.reads = to.reads - from.reads,
                  .volatiles = to.volatiles - from.volatiles,
                  .retries = to.retries - from.retries});
  }

 private:
  bool IsVolatile(std::string_view name, const NameSet& own) const {
    return name == "volatile" || volatiles_.contains(name) || own.contains(name);
  }

  // Where the list of arguments behind the name at `at` opens; 0 if none follows.
  std::size_t ArgumentsOf(std::size_t at) const {
    for (std::size_t ahead = 1; ahead <= kMostAlternatives; ++ahead) {
      if (code_.Is(at + ahead, "(")) return at + ahead;
      if (!code_.IsNameAt(at + ahead)) return 0;
    }
    return 0;
  }

  const Code& code_;
  const NameSet& volatiles_;
  std::vector<Seen> seen_;  // before each place, since its function's body began
};

// A wait without a body: "while (flag[i] == 0);" reads memory and changes nothing.
bool OnlyLooks(const Code& code, Range condition) {
  if (condition.size() > kLongestHead) return true;
  bool memory = false;
  for (std::size_t at = condition.begin; at < condition.end; ++at) {
    const std::string_view text = code.text(at);
    memory = memory || text == "[" || text == "*" || text == "(";
    const bool doubled = at + 1 < condition.end && code.text(at + 1) == text;
    if ((text == "+" || text == "-") && doubled) return false;
    const bool compares =
        at > condition.begin && Contains(std::array{"=", "!", "<", ">"}, code.text(at - 1));
    if (text == "=" && !doubled && !compares) return false;
  }
  return memory;
}

// The loop at `at` of a function that ends at `end` may wait for what others do.
bool MayWait(const Code& code, const Looker& looker, std::size_t at, std::size_t end) {
  const auto within = [end](std::size_t place) { return std::min(place, end); };
  if (code.Is(at, "do")) {
    std::size_t behind = within(code.BehindStatement(at + 1));
    if (behind < end && code.Is(behind, "while")) behind = within(code.BehindStatement(behind));
    return looker.PollsIn({at, behind});
  }
  if (!code.Is(at + 1, "(")) return true;  // a macro's alternatives: no loop one could read
  const Range head = code.Inside(at + 1);
  const std::size_t body = code.Behind(at + 1);
  if (code.Is(at, "for")) {
    const std::vector<Range> parts = code.Split(head, ";", 4);
    const bool counted = parts.size() == 3 && !parts[1].empty() && !parts[2].empty();
    if (counted) return looker.PollsIn({parts[1].begin, within(parts[1].end)});
  }
  if (code.Is(body, ";") && OnlyLooks(code, head)) return true;
  return looker.PollsIn({at + 1, within(code.BehindStatement(body))});
}

std::string AtLine(const SourceToken& token) { return " at line " + std::to_string(token.line); }

std::string WhyUnknown(const SourceToken& token) {
  return "a block may wait for another: its macro '" + UnknownMacro(token) + "'" + AtLine(token) +
         " has several meanings";
}

std::string WhyItWaits(const Code& code, const Looker& looker, const Function& function) {
  std::unordered_set<std::size_t> tails;  // of do-loops: looked at with their heads
  for (std::size_t at = function.body.begin; at < function.body.end; ++at) {
    const std::string_view text = code.text(at);
    if (text == "do") tails.insert(code.BehindStatement(at + 1));
    const bool loop = text == "for" || text == "do" || (text == "while" && !tails.contains(at));
    if (loop ? MayWait(code, looker, at, function.body.end) : text == "goto" && function.polls) {
      return "a block may wait for another in the loop" + AtLine(code.token(at));
    }
    if (IsUnknown(code.token(at))) return WhyUnknown(code.token(at));
  }
  return "";
}

// Who names whom, by functions' names.
class Calls {
 public:
  Calls(const Code& code, const std::vector<Function>& functions) {
    NameSet names;
    for (const Function& function : functions) names.insert(function.name);
    for (std::size_t i = 0; i < functions.size(); ++i) {
      for (std::size_t at = functions[i].all.begin; at < functions[i].all.end; ++at) {
        if (names.contains(code.text(at))) callers_[code.text(at)].push_back(i);
      }
    }
  }

  // Tells every function that names one of which `told` holds, and whoever names it.
  void Spread(std::vector<Function>& functions, const std::function<bool(const Function&)>& told,
              const std::function<void(const Function&, Function&)>& tell) const {
    std::vector<std::size_t> news;
    for (std::size_t i = 0; i < functions.size(); ++i) {
      if (told(functions[i])) news.push_back(i);
    }
    NameSet spread;
    while (!news.empty()) {
      const Function& from = functions[news.back()];
      news.pop_back();
      if (!spread.insert(from.name).second) continue;
      const auto callers = callers_.find(from.name);
      if (callers == callers_.end()) continue;
      for (const std::size_t caller : callers->second) {
        if (told(functions[caller])) continue;
        tell(from, functions[caller]);
        news.push_back(caller);
      }
    }
  }

 private:
  std::unordered_map<std::string_view, std::vector<std::size_t>> callers_;
};

// A macro's use outside of all functions may have made some.
std::string UnknownOutside(const Code& code, const std::vector<Function>& functions) {
  auto next = functions.begin();
  for (std::size_t at = 0; at < code.size(); ++at) {
    if (next != functions.end() && at == next->all.begin) {
      at = next++->all.end - 1;
    } else if (IsUnknown(code.token(at))) {
      return WhyUnknown(code.token(at));
    }
  }
  return "";
}

}  // namespace

SourceWaits FindWaits(const std::vector<SourceToken>& tokens) {
  const Code code(tokens);
  NameSet volatiles, polling;
  std::vector<Function> functions = Functions(code, volatiles);
  const Calls calls(code, functions);
  Looker looker(code, volatiles);
  // A kernel's own polls are looked at loop by loop; a helper's count where it is called.
  for (Function& function : functions) {
    looker.LookAt(function, polling);
    function.polls = looker.PollsIn(function.body);
  }
  calls.Spread(
      functions, [](const Function& function) { return function.polls; },
      [](const Function&, Function& to) { to.polls = true; });
  for (const Function& function : functions) {
    if (function.polls) polling.insert(function.name);
  }
  for (Function& function : functions) {
    looker.LookAt(function, polling);
    function.waits = WhyItWaits(code, looker, function);
  }
  calls.Spread(
      functions, [](const Function& function) { return !function.waits.empty(); },
      [](const Function& from, Function& to) { to.waits = from.waits; });
  SourceWaits found{.waits = {}, .functions = {}, .unknown = UnknownOutside(code, functions)};
  for (const Function& function : functions) {
    found.functions.emplace(function.name);
    if (!function.waits.empty()) found.waits.emplace(function.name, function.waits);
  }
  return found;
}

}  // namespace gpusched::device
