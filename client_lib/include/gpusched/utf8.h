// Whether a text is UTF-8 (RFC 3629), as every string on the wire must be.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gpusched {

// Where the first character that is none begins: an overlong form, half of a surrogate pair, a
// value beyond U+10FFFF, a torn sequence. Nothing where all are well formed.
constexpr std::optional<std::size_t> FirstNotUtf8(std::string_view text) {
  const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char lead = at(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    if (lead < 0xC2 || lead > 0xF4) return i;
    const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    // Only the second byte's range depends on the first (RFC 3629, section 4).
    unsigned char least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (text.size() - i < length) return i;
    for (std::size_t k = 1; k < length; ++k) {
      if (at(i + k) < least || at(i + k) > most) return i;
      least = 0x80;
      most = 0xBF;
    }
    i += length;
  }
  return std::nullopt;
}

}  // namespace gpusched
