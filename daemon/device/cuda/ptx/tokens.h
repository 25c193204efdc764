// The words of a PTX text, with comments passed over and strings kept whole.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpusched/status.h"

namespace gpusched::device::ptx {

// A word is an identifier with all that its dots join: "mov.u32", "%ctaid.x", ".visible",
// "st.shared::cta.b32". Everything else that is not a number or a string is a mark of one
// character.
enum class TokenKind : std::uint8_t { kWord, kNumber, kString, kMark, kEnd };

struct Token {
  std::uint32_t begin = 0;  // byte offset in the text
  std::uint32_t size = 0;
  TokenKind kind = TokenKind::kEnd;
  char first = '\0';  // the first character: most questions end there
};

// A text larger than this is refused: the largest modules of known libraries have a tenth of it.
inline constexpr std::size_t kMostTextBytes = 256u << 20;

// The text as tokens, closed by one kEnd. INVALID_ARGUMENT (BAD_MODULE) for a comment or string
// without an end, for a character no PTX has, and for a text that is too large.
Result<std::vector<Token>> Tokenize(std::string_view text);

// The same, but of what stands in braces only the braces, and the words that begin with "%ctaid" or
// "%nctaid": enough to see the outline, and several times faster.
Result<std::vector<Token>> TokenizeOutline(std::string_view text);

// 1 for the first line.
std::uint32_t LineOf(std::string_view text, std::uint32_t offset);

// "line 12: ..." with the reason BAD_MODULE.
Status BadPtx(std::string_view text, std::uint32_t offset, std::string_view what);

}  // namespace gpusched::device::ptx
