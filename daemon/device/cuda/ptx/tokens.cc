// One pass over the bytes, a table lookup for each.
#include "device/cuda/ptx/tokens.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "gpusched/reasons.h"

namespace gpusched::device::ptx {
namespace {

enum class Class : std::uint8_t { kBad, kSpace, kLetter, kDigit, kMark, kQuote };

constexpr std::array<Class, 256> MakeClasses() {
  std::array<Class, 256> classes{};
  for (char c : {' ', '\t', '\n', '\r', '\f', '\v'}) {
    classes[static_cast<unsigned char>(c)] = Class::kSpace;
  }
  for (unsigned c = 'a'; c <= 'z'; ++c) classes[c] = classes[c - 'a' + 'A'] = Class::kLetter;
  for (char c : {'_', '$', '%', '.'}) classes[static_cast<unsigned char>(c)] = Class::kLetter;
  for (unsigned c = '0'; c <= '9'; ++c) classes[c] = Class::kDigit;
  for (char c : {'{', '}', '(', ')', '[', ']', '<', '>', ',', ';', ':', '@',
                 '!', '+', '-', '*', '/', '|', '&', '^', '~', '=', '?', '#'}) {
    classes[static_cast<unsigned char>(c)] = Class::kMark;
  }
  classes[static_cast<unsigned char>('"')] = Class::kQuote;
  return classes;
}
constexpr std::array<Class, 256> kClasses = MakeClasses();

constexpr std::array<bool, 256> MakeInWord() {
  std::array<bool, 256> in{};
  for (std::size_t c = 0; c < in.size(); ++c) {
    in[c] = kClasses[c] == Class::kLetter || kClasses[c] == Class::kDigit;
  }
  return in;
}
constexpr std::array<bool, 256> kInWord = MakeInWord();

Class ClassOf(char c) { return kClasses[static_cast<unsigned char>(c)]; }
bool InWord(char c) { return kInWord[static_cast<unsigned char>(c)]; }

// The end of a word or number that begins at `at`. "::" joins within opcodes: "shared::cta".
inline std::size_t EndOfWord(std::string_view text, std::size_t at) {
  const char* bytes = text.data();
  const std::size_t size = text.size();
  for (;;) {
    while (at < size && InWord(bytes[at])) ++at;
    if (at + 2 >= size || bytes[at] != ':' || bytes[at + 1] != ':' || !InWord(bytes[at + 2])) {
      return at;
    }
    at += 2;
  }
}

// The end of the string whose quote is at `at`; npos if it has none.
std::size_t EndOfString(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

// Past the comment at `at`, which holds "//" or "/*"; npos if it has no end.
std::size_t EndOfComment(std::string_view text, std::size_t at) {
  const bool to_line_end = text[at + 1] == '/';
  const std::size_t end = text.find(to_line_end ? "\n" : "*/", at + 2);
  if (end == std::string_view::npos) return to_line_end ? text.size() : end;
  return to_line_end ? end : end + 2;
}

bool IsComment(std::string_view text, std::size_t at) {
  return text[at] == '/' && at + 1 < text.size() && (text[at + 1] == '/' || text[at + 1] == '*');
}

}  // namespace

namespace {

// Where the outline's scan of a body stops to look.
constexpr std::array<bool, 256> MakeStops() {
  std::array<bool, 256> stops{};
  for (char c : {'{', '}', '"', '/', '%'}) stops[static_cast<unsigned char>(c)] = true;
  return stops;
}
constexpr std::array<bool, 256> kStops = MakeStops();

bool BeginsBlockId(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at + 1, 6);
  return rest.starts_with("ctaid") || rest.starts_with("nctaid");
}

// From `at` within braces to the next thing that an outline has in it.
std::size_t SkipInBraces(std::string_view text, std::size_t at) {
  for (;; ++at) {
    while (at < text.size() && !kStops[static_cast<unsigned char>(text[at])]) ++at;
    if (at >= text.size()) return text.size();
    switch (text[at]) {
      case '%':
        if (BeginsBlockId(text, at)) return at;
        break;
      case '/':
        if (IsComment(text, at)) return at;
        break;
      case '{':
      case '}':
      case '"': return at;
    }
  }
}

template <bool kOutline>
Result<std::vector<Token>> TokenizeAs(std::string_view text) {
  if (text.size() > kMostTextBytes) return BadPtx({}, 0, "the text is larger than 256 MiB");
  constexpr std::size_t kBytesPerToken = 4;  // nvcc's output has about 4.3
  std::vector<Token> tokens;
  if constexpr (!kOutline) tokens.reserve(text.size() / kBytesPerToken + 1);
  [[maybe_unused]] int depth = 0;  // of braces
  const auto add = [&](std::size_t begin, std::size_t end, TokenKind kind) {
    tokens.push_back({.begin = static_cast<std::uint32_t>(begin),
                      .size = static_cast<std::uint32_t>(end - begin),
                      .kind = kind,
                      .first = text[begin]});
  };
  for (std::size_t at = 0; at < text.size();) {
    if (kOutline && depth > 0) {
      at = SkipInBraces(text, at);
      if (at == text.size()) break;
    }
    const auto offset = static_cast<std::uint32_t>(at);
    std::size_t end = at + 1;
    switch (ClassOf(text[at])) {
      case Class::kSpace:
        while (end < text.size() && ClassOf(text[end]) == Class::kSpace) ++end;
        break;
      case Class::kLetter:
        end = EndOfWord(text, at);
        add(at, end, TokenKind::kWord);
        break;
      case Class::kDigit:
        end = EndOfWord(text, at);
        add(at, end, TokenKind::kNumber);
        break;
      case Class::kQuote:
        end = EndOfString(text, at);
        if (end == std::string_view::npos) return BadPtx(text, offset, "a string has no end");
        add(at, end, TokenKind::kString);
        break;
      case Class::kMark:
        if (!IsComment(text, at)) {
          add(at, end, TokenKind::kMark);
          if constexpr (kOutline) depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
          break;
        }
        end = EndOfComment(text, at);
        if (end == std::string_view::npos) return BadPtx(text, offset, "a comment has no end");
        break;
      case Class::kBad:
        // A text from a fatbin or a C string may carry its closing NULs.
        if (text[at] == '\0' && text.find_first_not_of('\0', at) == std::string_view::npos) {
          end = text.size();
          break;
        }
        return BadPtx(text, offset, "a character that no PTX has");
    }
    at = end;
  }
  tokens.push_back({.begin = static_cast<std::uint32_t>(text.size())});
  return tokens;
}

}  // namespace

Result<std::vector<Token>> Tokenize(std::string_view text) { return TokenizeAs<false>(text); }

Result<std::vector<Token>> TokenizeOutline(std::string_view text) { return TokenizeAs<true>(text); }

std::uint32_t LineOf(std::string_view text, std::uint32_t offset) {
  const auto before = text.substr(0, std::min<std::size_t>(offset, text.size()));
  return 1 + static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n'));
}

Status BadPtx(std::string_view text, std::uint32_t offset, std::string_view what) {
  return {StatusCode::kInvalidArgument, reason::kBadModule,
          "PTX, line " + std::to_string(LineOf(text, offset)) + ": " + std::string(what)};
}

}  // namespace gpusched::device::ptx
