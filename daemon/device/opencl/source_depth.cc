// Counts what a compiler might call itself for: open brackets, and the words of one statement.
#include "device/opencl/source_depth.h"

#include <cstddef>
#include <string_view>

namespace gpusched::device {
namespace {

// Compilers stop at 256 by themselves, but not where a macro's arguments nest.
constexpr std::size_t kMostOpenBrackets = 1'000;
// Each may be a call of the compiler's, of a few KiB; its stack has 512 MiB.
constexpr std::size_t kLongestStatement = 50'000;

bool Opens(std::string_view text) { return text == "(" || text == "{" || text == "["; }
bool Closes(std::string_view text) { return text == ")" || text == "}" || text == "]"; }

std::string At(const SourceToken& token) { return " at line " + std::to_string(token.line); }

struct Bracket {
  std::size_t before = 0;  // words of the statement in which it opens
  bool is_block = true;
  bool is_list = false;  // of an array's values
};

}  // namespace

std::string BracketsTooDeep(const std::vector<SourceToken>& tokens) {
  std::size_t open = 0;
  for (const SourceToken& token : tokens) {
    if (Closes(token.text) && open > 0) --open;
    if (!Opens(token.text) || ++open <= kMostOpenBrackets) continue;
    return "more than " + std::to_string(kMostOpenBrackets) + " brackets are open" + At(token) +
           ", too many for a compiler";
  }
  return "";
}

std::string StatementsTooLong(const std::vector<SourceToken>& code) {
  std::vector<Bracket> open(1);  // around all is the source, a block
  std::size_t words = 0;         // so far, those in front of the brackets it stands in included
  for (std::size_t at = 0; at < code.size(); ++at) {
    const std::string_view text = code[at].text;
    bool ends = text == ";" || (text == "," && open.back().is_list);
    if (Opens(text)) {
      const bool list =
          text == "{" && (open.back().is_list || (at > 0 && code[at - 1].text == "="));
      open.push_back({.before = words, .is_block = text == "{", .is_list = list});
    } else if (Closes(text) && open.size() > 1) {
      // What stands within one bracket does not nest in the next.
      words = open.back().before;
      ends = open.back().is_block && !open.back().is_list;
      open.pop_back();
    }
    // A chain of else-ifs nests.
    if (ends && !(at + 1 < code.size() && code[at + 1].text == "else")) words = open.back().before;
    if (++words <= kLongestStatement) continue;
    return "a statement has more than " + std::to_string(kLongestStatement) + " words" +
           At(code[at]) + ", too many for a compiler: divide it";
  }
  return "";
}

}  // namespace gpusched::device
