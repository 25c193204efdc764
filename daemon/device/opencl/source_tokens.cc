// One pass over the characters; it accepts anything and never fails.
#include "device/opencl/source_tokens.h"

#include <cctype>

namespace gpusched::device {
namespace {

bool StartsName(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }
bool ContinuesName(char c) { return StartsName(c) || IsDigit(c); }

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view source) : source_(source) {}

  SourceTokens Run() {
    while (at_ < source_.size()) Step();
    EndLine();
    return std::move(tokens_);
  }

 private:
  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  void Step() {
    const char c = Peek();
    if (SkipSplice()) return;
    if (c == '\n') {
      EndLine();
      ++line_;
      ++at_;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++at_;
    } else if (c == '/' && Peek(1) == '/') {
      while (at_ < source_.size() && Peek() != '\n') {
        if (!SkipSplice()) ++at_;
      }
    } else if (c == '/' && Peek(1) == '*') {
      SkipComment();
    } else if (c == '"' || c == '\'') {
      SkipLiteral(c);
    } else if (line_is_fresh_ && BeginsDirective()) {
      in_directive_ = true;
      line_is_fresh_ = false;
    } else if (StartsName(c)) {
      Add(Take(ContinuesName));
    } else if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) {
      Add(Take([](char d) { return ContinuesName(d) || d == '.'; }));
    } else {
      Add(std::string(1, c));
      ++at_;
    }
  }

  // A backslash at the end of a line: the next line goes on with this one.
  bool SkipSplice() {
    if (Peek() != '\\') return false;
    std::size_t length = 1;
    if (Peek(length) == '\r') ++length;
    if (Peek(length) != '\n') return false;
    at_ += length + 1;
    ++line_;
    return true;
  }

  // '#' or its digraph or trigraph.
  bool BeginsDirective() {
    const std::string_view rest = source_.substr(at_);
    for (const std::string_view sign : {"#", "%:", "?\?="}) {
      if (!rest.starts_with(sign)) continue;
      at_ += sign.size();
      return true;
    }
    return false;
  }

  void SkipComment() {
    at_ += 2;
    while (at_ < source_.size() && !(Peek() == '*' && Peek(1) == '/')) {
      if (Peek() == '\n') ++line_;
      ++at_;
    }
    at_ += 2;
  }

  void SkipLiteral(char quote) {
    ++at_;
    while (at_ < source_.size() && Peek() != quote && Peek() != '\n') {
      if (SkipSplice()) continue;
      at_ += Peek() == '\\' ? 2 : 1;
    }
    if (Peek() == quote) ++at_;
    Add("");
  }

  template <typename Continues>
  std::string Take(Continues continues) {
    std::string word;
    while (at_ < source_.size()) {
      if (SkipSplice()) continue;
      if (!continues(Peek())) break;
      word += source_[at_++];
    }
    return word;
  }

  void Add(std::string text) {
    line_is_fresh_ = false;
    (in_directive_ ? directive_ : tokens_.code).push_back({std::move(text), line_});
  }

  void EndLine() {
    if (!directive_.empty()) tokens_.directives.push_back(std::move(directive_));
    directive_.clear();
    in_directive_ = false;
    line_is_fresh_ = true;
  }

  const std::string_view source_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool line_is_fresh_ = true;  // only white space and comments so far
  bool in_directive_ = false;
  DirectiveLine directive_;
  SourceTokens tokens_;
};

}  // namespace

SourceTokens Tokenize(std::string_view source) { return Tokenizer(source).Run(); }

bool IsName(const SourceToken& token) { return !token.text.empty() && StartsName(token.text[0]); }
bool IsNumber(const SourceToken& token) {
  return !token.text.empty() &&
         (IsDigit(token.text[0]) || (token.text[0] == '.' && token.text.size() > 1));
}

}  // namespace gpusched::device
