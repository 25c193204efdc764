// Reads the directives for what they would undo or open, and puts the parts of the scan together.
#include "device/opencl/source_scan.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "device/opencl/cut_prelude.h"
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

bool AsksForFile(const SourceToken& token) {
  return token.text.starts_with("__has_include") || token.text.starts_with("__has_embed");
}

std::string ReadsFile(const SourceTokens& source, const ExpandedCode& expanded) {
  bool joins = false;
  for (const DirectiveLine& line : source.directives) {
    const std::string& what = line[0].text;
    if (what == "include" || what == "include_next" || what == "import" || what == "embed") {
      return "#" + what + AtLine(line[0]);
    }
    const auto asks = std::find_if(line.begin(), line.end(), AsksForFile);
    if (asks != line.end()) return asks->text + AtLine(*asks);
    joins |= what == "define" && std::count_if(line.begin(), line.end(), [](const auto& token) {
                                   return token.text == "#";
                                 }) > 1;
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
