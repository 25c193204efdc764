// One pass over the characters, but for what a _Pragma says; it accepts anything and never fails.
#include "device/opencl/source_tokens.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace gpusched::device {
namespace {

bool StartsName(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }
bool ContinuesName(char c) { return StartsName(c) || IsDigit(c); }

// What compilers skip; of other alphabets they skip some, and nothing here depends on the rest.
bool IsBlank(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isspace(byte) || byte == 0 || byte >= 0x80;
}

// Length of a line's end, or 0.
std::size_t LineEndAt(std::string_view source, std::size_t at) {
  const std::string_view rest = source.substr(std::min(at, source.size()));
  if (rest.starts_with("\r\n")) return 2;
  return rest.starts_with('\r') || rest.starts_with('\n') ? 1 : 0;
}

// Length of what joins the line with the next, or 0: a backslash or its trigraph, white space that
// compilers overlook, and the line's end.
std::size_t JointAt(std::string_view source, std::size_t at) {
  const std::string_view rest = source.substr(at);
  const std::size_t sign = rest.starts_with('\\') ? 1 : rest.starts_with("?\?/") ? 3 : 0;
  if (sign == 0) return 0;
  const std::size_t end = std::min(rest.find_first_not_of(" \t\v\f", sign), rest.size());
  // Either half may come first here, and only here.
  const std::size_t line_end = rest.substr(end).starts_with("\n\r") ? 2 : LineEndAt(rest, end);
  return line_end != 0 ? end + line_end : 0;
}

// Other ways to write a character: OpenCL C has both kinds.
struct Spelling {
  std::string_view written;
  char meant;
};
// Everywhere. In a literal the first guards a quote.
constexpr std::array<Spelling, 6> kTrigraphs{
    {{"?\?/", '\\'}, {"?\?=", '#'}, {"?\?<", '{'}, {"?\?>", '}'}, {"?\?(", '['}, {"?\?)", ']'}}};
// Outside literals and comments.
constexpr std::array<Spelling, 5> kDigraphs{
    {{"%:", '#'}, {"<%", '{'}, {"%>", '}'}, {"<:", '['}, {":>", ']'}}};

template <std::size_t n>
const Spelling* SpellingAt(const std::array<Spelling, n>& spellings, std::string_view rest) {
  const auto found = std::find_if(spellings.begin(), spellings.end(), [rest](const Spelling& one) {
    return rest.starts_with(one.written);
  });
  return found == spellings.end() ? nullptr : &*found;
}

// Directives whose lines compilers read word by word. Others they may skip as they stand, and then
// a comment that begins on one ends with it.
constexpr std::array<std::string_view, 11> kReadInWords{"define", "undef", "if",      "ifdef",
                                                        "ifndef", "elif",  "elifdef", "elifndef",
                                                        "else",   "endif", "line"};

// What a literal within a _Pragma means.
std::string Unquoted(std::string_view literal) {
  std::string meant;
  for (std::size_t at = 0; at < literal.size(); ++at) {
    const bool escapes = literal[at] == '\\' && at + 1 < literal.size() &&
                         (literal[at + 1] == '\\' || literal[at + 1] == '"');
    if (escapes) ++at;
    meant += literal[at];
  }
  return meant;
}

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view source) {
    for (std::size_t at = 0; at < source.size();) {
      if (const std::size_t joint = JointAt(source, at); joint != 0) {
        joints_.push_back(source_.size());
        at += joint;
      } else if (const std::size_t line_end = LineEndAt(source, at); line_end != 0) {
        source_ += '\n';
        at += line_end;
      } else if (const Spelling* trigraph = SpellingAt(kTrigraphs, source.substr(at))) {
        source_ += trigraph->meant;
        at += trigraph->written.size();
      } else {
        source_ += source[at++];
      }
    }
  }

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
    for (; joint_ < joints_.size() && joints_[joint_] <= at_; ++joint_) ++line_;
    const char c = Peek();
    if (c == '\n') {
      EndLine();
      ++line_;
      ++at_;
    } else if (IsBlank(c)) {
      blank_ = true;
      ++at_;
    } else if (c == '/' && Peek(1) == '/') {
      DoubtIfSplit(at_ + 1);
      while (at_ < source_.size() && Peek() != '\n') ++at_;
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
    } else if (const Spelling* digraph = SpellingAt(kDigraphs, Rest())) {
      Add(std::string(1, digraph->meant));
      at_ += digraph->written.size();
    } else {
      Add(std::string(1, c));
      ++at_;
    }
  }

  std::string_view Rest() const { return std::string_view(source_).substr(at_); }

  // '#' or its digraph.
  bool BeginsDirective() {
    for (const std::string_view sign : {"#", "%:"}) {
      if (!Rest().starts_with(sign)) continue;
      at_ += sign.size();
      return true;
    }
    return false;
  }

  void SkipComment() {
    blank_ = true;
    DoubtIfSplit(at_ + 1);
    const std::uint32_t begin = line_;
    at_ += 2;
    while (at_ < source_.size() && !(Peek() == '*' && Peek(1) == '/')) {
      if (Peek() == '\n') ++line_;
      ++at_;
    }
    DoubtIfSplit(at_ + 1);
    at_ += 2;
    const bool in_words = !in_directive_ || directive_.empty() ||
                          std::find(kReadInWords.begin(), kReadInWords.end(), directive_[0].text) !=
                              kReadInWords.end();
    if (in_words || line_ == begin) return;
    Doubt("its comment at line " + std::to_string(begin) + " begins on a #" + directive_[0].text +
          " and ends on another line: begin it on the next");
  }

  // Where "/*" or its like is cut by a line that goes on, compilers differ.
  void DoubtIfSplit(std::size_t place) {
    if (!std::binary_search(joints_.begin(), joints_.end(), place)) return;
    Doubt("a line ends within the mark that begins or ends its comment at line " +
          std::to_string(line_) + ": write that mark in one piece");
  }

  void Doubt(std::string why) {
    if (tokens_.doubtful.empty()) tokens_.doubtful = std::move(why);
  }

  void SkipLiteral(char quote) {
    const std::size_t begin = ++at_;
    while (at_ < source_.size() && Peek() != quote && Peek() != '\n') {
      // An escape does not reach beyond the line.
      at_ += Peek() == '\\' && Peek(1) != '\n' ? 2 : 1;
    }
    at_ = std::min(at_, source_.size());
    ReadPragma(std::string_view(source_).substr(begin, at_ - begin));
    if (Peek() == quote) ++at_;
    Add("");
  }

  // If the literal is a _Pragma's.
  void ReadPragma(std::string_view literal) {
    const auto& before = in_directive_ ? directive_ : tokens_.code;
    const std::size_t count = before.size();
    if (count < 2 || before[count - 1].text != "(" || before[count - 2].text != "_Pragma") return;
    SourceTokens said = Tokenize("#pragma " + Unquoted(literal) + "\n");
    for (DirectiveLine& line : said.directives) {
      for (SourceToken& token : line) token.line = line_;
      tokens_.directives.push_back(std::move(line));
      tokens_.places.push_back(tokens_.code.size());
    }
  }

  template <typename Continues>
  std::string Take(Continues continues) {
    std::string word;
    while (at_ < source_.size() && continues(Peek())) word += source_[at_++];
    return word;
  }

  void Add(std::string text) {
    line_is_fresh_ = false;
    auto& to = in_directive_ ? directive_ : tokens_.code;
    to.push_back({.text = std::move(text), .line = line_, .after_blank = blank_});
    blank_ = false;
  }

  void EndLine() {
    blank_ = true;
    if (!directive_.empty()) {
      tokens_.directives.push_back(std::move(directive_));
      tokens_.places.push_back(tokens_.code.size());
    }
    directive_.clear();
    in_directive_ = false;
    line_is_fresh_ = true;
  }

  std::string source_;               // lines end with '\n'; those that go on are joined
  std::vector<std::size_t> joints_;  // where
  std::size_t joint_ = 0;            // the first that is not behind `at_`
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool line_is_fresh_ = true;  // only white space and comments so far
  bool blank_ = true;          // white space or a comment before the next token
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
