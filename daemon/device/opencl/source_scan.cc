// Reads the directives for what they would undo or open, and puts the parts of the scan together.
#include "device/opencl/source_scan.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "device/opencl/cut_prelude.h"
#include "device/opencl/source_depth.h"
#include "device/opencl/source_macros.h"
#include "device/opencl/source_tokens.h"
#include "device/opencl/source_waits.h"

namespace gpusched::device {
namespace {

template <typename Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
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

constexpr std::array<std::string_view, 5> kIncludes{"include", "include_next", "import", "embed",
                                                    "__include_macros"};

// What compilers themselves are told by "#pragma GCC" or "#pragma clang", as far as it does no
// harm: of the rest some read files (dependency, module), some end the compiler (__debug).
constexpr std::array<std::string_view, 14> kHarmlessPragmas{
    "attribute", "diagnostic", "error",   "fp",          "ivdep",  "loop",       "message",
    "optimize",  "poison",     "section", "pop_options", "unroll", "visibility", "warning"};

std::string HarmfulPragma(const DirectiveLine& line) {
  if (line[0].text != "pragma" || line.size() < 3) return "";
  const std::string& whose = line[1].text;
  if (whose != "GCC" && whose != "clang") return "";
  if (Contains(kHarmlessPragmas, line[2].text)) return "";
  return "its #pragma " + whose + " " + line[2].text + AtLine(line[0]) +
         " may read files of the daemon's host or end the compiler: leave it out";
}

// Puts tokens together (##), or may do so.
bool Joins(const DirectiveLine& line) {
  return line[0].text == "define" && std::count_if(line.begin(), line.end(), [](const auto& token) {
                                       return token.text == "#";
                                     }) > 1;
}

// A _Pragma whose literal does not follow it.
std::string UnreadPragma(const std::vector<SourceToken>& tokens) {
  const auto is = [&](std::size_t at, std::string_view text) {
    return at < tokens.size() && tokens[at].text == text;
  };
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    if (!is(at, "_Pragma") || (is(at + 1, "(") && is(at + 2, "") && is(at + 3, ")"))) continue;
    return "nobody can tell what its _Pragma says" + AtLine(tokens[at]) +
           ": write its literal behind it, or a #pragma";
  }
  return "";
}

// What ## may put together to one.
std::string PieceOfPragma(const std::vector<SourceToken>& tokens) {
  constexpr std::string_view kWhole = "_Pragma";
  for (const SourceToken& token : tokens) {
    if (token.text.empty() || token.text == kWhole || !kWhole.starts_with(token.text)) continue;
    return "its ## may make a _Pragma of '" + token.text + "'" + AtLine(token) + ": rename that";
  }
  return "";
}

std::string HarmfulPragmas(const SourceTokens& source) {
  const bool joins = std::any_of(source.directives.begin(), source.directives.end(), Joins);
  const auto check = [joins](const std::vector<SourceToken>& tokens) {
    const std::string why = UnreadPragma(tokens);
    return why.empty() && joins ? PieceOfPragma(tokens) : why;
  };
  for (const DirectiveLine& line : source.directives) {
    if (std::string why = HarmfulPragma(line); !why.empty()) return why;
    if (std::string why = check(line); !why.empty()) return why;
  }
  return check(source.code);
}

std::string TooDeep(const SourceTokens& source, const ExpandedCode& expanded) {
  for (const DirectiveLine& line : source.directives) {
    if (std::string why = BracketsTooDeep(line); !why.empty()) return why;
  }
  for (const auto* tokens : {&source.code, &expanded.code, &expanded.conditions}) {
    if (std::string why = BracketsTooDeep(*tokens); !why.empty()) return why;
  }
  for (const auto* tokens : {&expanded.code, &expanded.conditions}) {
    if (std::string why = StatementsTooLong(*tokens); !why.empty()) return why;
  }
  return "";
}

// Compilers know it in OpenCL C too, and what it makes of a macro is not read here.
std::string OptionalPart(const SourceTokens& source) {
  for (const DirectiveLine& line : source.directives) {
    for (const SourceToken& token : line) {
      if (token.text == "__VA_OPT__") {
        return "its __VA_OPT__" + AtLine(token) + " is not OpenCL C: write two macros";
      }
    }
  }
  return "";
}

std::string Refused(const SourceTokens& source, const ExpandedCode& expanded) {
  if (!source.doubtful.empty()) return source.doubtful;
  if (std::string why = OptionalPart(source); !why.empty()) return why;
  std::string why = HarmfulPragmas(source);
  return why.empty() ? TooDeep(source, expanded) : why;
}

bool AsksForFile(const SourceToken& token) {
  return token.text.starts_with("__has_include") || token.text.starts_with("__has_embed");
}

std::string ReadsFile(const SourceTokens& source, const ExpandedCode& expanded) {
  bool joins = false;
  for (const DirectiveLine& line : source.directives) {
    const std::string& what = line[0].text;
    if (Contains(kIncludes, what)) {
      return "#" + what + AtLine(line[0]);
    }
    const auto asks = std::find_if(line.begin(), line.end(), AsksForFile);
    if (asks != line.end()) return asks->text + AtLine(*asks);
    joins |= Joins(line);
  }
  // A name that only macros put together counts where a condition asks for it.
  for (const SourceToken& token : expanded.conditions) {
    if (AsksForFile(token)) return token.text + AtLine(token);
    if (joins && IsUnknown(token)) {
      return "perhaps: its macro '" + UnknownMacro(token) +
             "' has several meanings in a condition" + AtLine(token);
    }
  }
  return joins && expanded.too_much ? "perhaps: its macros become too much to tell" : "";
}

std::string NoPrelude(const SourceTokens& source, const std::vector<SourceToken>& code) {
  for (const DirectiveLine& line : source.directives) {
    if (std::string why = Undone(line); !why.empty()) return why;
  }
  const auto check = [](const std::vector<SourceToken>& tokens) -> std::string {
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
  if (why.empty()) why = check(code);
  for (const DirectiveLine& line : source.directives) {
    if (why.empty()) why = check(line);
  }
  return why;
}

}  // namespace

SourceScan Scan(std::string_view source) {
  const SourceTokens tokens = Tokenize(source);
  const ExpandedCode expanded = ExpandMacros(tokens);
  SourceWaits waits = FindWaits(expanded.code);
  return {.reads_file = ReadsFile(tokens, expanded),
          .refused = Refused(tokens, expanded),
          .no_prelude = NoPrelude(tokens, expanded.code),
          .unsure = expanded.too_much
                        ? "a block may wait for another: its macros become too much code to tell"
                        : std::move(waits.unknown),
          .waits = std::move(waits.waits),
          .functions = std::move(waits.functions)};
}

std::string SourceScan::WaitOf(const std::string& name) const {
  if (!unsure.empty()) return unsure;
  if (const auto found = waits.find(name); found != waits.end()) return found->second;
  return functions.contains(name) || waits.empty() ? "" : waits.begin()->second;
}

}  // namespace gpusched::device
