// A preprocessor's text lines: definitions come and go with the lines, uses are replaced and read
// again.
#include "device/opencl/source_macros.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace gpusched::device {
namespace {

// What macros may take in work, in tokens read: much for a short source, little for a long one,
// which has nearly all of it to itself.
constexpr std::size_t kWorkPerToken = 2;
constexpr std::size_t kLeastWork = std::size_t{1} << 18;
// Uses within arguments of uses: each is a call of ours.
constexpr int kDeepest = 64;
// Definitions of one name that may hold at one place.
constexpr std::size_t kMostDefinitions = 8;
// Cannot come out of a source: there it is a token of its own.
constexpr char kUnknownMark = '@';

using TokenList = std::vector<SourceToken>;

struct Definition {
  static constexpr std::size_t kNoParameter = static_cast<std::size_t>(-1);
  struct Item {
    SourceToken token;
    std::size_t parameter = kNoParameter;
    bool quoted = false;  // #parameter
    bool joined = false;  // ## stands before it
  };
  bool takes_arguments = false;
  bool variadic = false;  // the last parameter takes what is left
  std::vector<std::string> parameters;
  std::vector<Item> body;
};

bool SameText(const SourceToken& a, const SourceToken& b) { return a.text == b.text; }

struct Name {
  std::vector<Definition> definitions;
  DirectiveLine written;  // the last of them
  bool may_be_none = false;
  int within = 0;  // its own replacement is being read: it stays a name there
};

bool Is(const TokenList& tokens, std::size_t at, std::string_view text) {
  return at < tokens.size() && tokens[at].text == text;
}

// The parameters in "(a, b, ...)"; the place behind them, or nothing if it is no such list.
std::optional<std::size_t> ReadParameters(const DirectiveLine& line, std::size_t at,
                                          Definition& to) {
  for (; at < line.size(); ++at) {
    if (Is(line, at, ")")) return at + 1;
    if (Is(line, at, ",")) continue;
    if (Is(line, at, ".")) {
      // "args..." names the rest, "..." alone has the name of the language.
      if (!to.variadic && Is(line, at - 1, ",")) to.parameters.push_back("__VA_ARGS__");
      if (!to.variadic && Is(line, at - 1, "(")) to.parameters.push_back("__VA_ARGS__");
      to.variadic = true;
    } else if (IsName(line[at])) {
      to.parameters.push_back(line[at].text);
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<Definition> ReadDefinition(const DirectiveLine& line) {
  Definition definition;
  std::unordered_map<std::string_view, std::size_t> parameters;
  std::size_t at = 2;
  if (Is(line, at, "(") && !line[at].after_blank) {
    definition.takes_arguments = true;
    const auto behind = ReadParameters(line, at + 1, definition);
    if (!behind) return std::nullopt;
    at = *behind;
    for (std::size_t i = 0; i < definition.parameters.size(); ++i) {
      parameters.emplace(definition.parameters[i], i);
    }
  }
  bool joined = false;
  for (; at < line.size(); ++at) {
    if (Is(line, at, "#") && Is(line, at + 1, "#") && !line[at + 1].after_blank) {
      joined = true;
      ++at;
      continue;
    }
    const bool quoted = definition.takes_arguments && Is(line, at, "#") && at + 1 < line.size();
    if (quoted) ++at;
    Definition::Item item{.token = line[at], .quoted = quoted, .joined = joined};
    const auto parameter = parameters.find(item.token.text);
    if (parameter != parameters.end()) item.parameter = parameter->second;
    definition.body.push_back(std::move(item));
    joined = false;
  }
  return definition;
}

// The names as they stand at the place that is read.
class Table {
 public:
  void Read(const DirectiveLine& line) {
    const std::string& what = line[0].text;
    if (what == "if" || what == "ifdef" || what == "ifndef") ++conditions_;
    if (what == "endif") conditions_ = std::max(conditions_ - 1, 0);
    if (line.size() < 2) return;
    if (what == "define") Define(line);
    if (what == "undef") Undefine(line[1].text);
  }

  Name* Find(const SourceToken& token) {
    if (token.stays || !IsName(token)) return nullptr;
    const auto found = names_.find(token.text);
    return found == names_.end() || found->second.definitions.empty() ? nullptr : &found->second;
  }

 private:
  void Define(const DirectiveLine& line) {
    std::optional<Definition> definition = ReadDefinition(line);
    if (!definition) return;
    Name& name = names_[line[1].text];
    if (conditions_ == 0) {
      name.definitions.clear();
      name.may_be_none = false;
    } else if (name.definitions.empty()) {
      name.may_be_none = true;
    } else if (std::equal(line.begin(), line.end(), name.written.begin(), name.written.end(),
                          SameText)) {
      return;
    }
    // One too many is enough to know that it is.
    if (name.definitions.size() > kMostDefinitions) return;
    name.definitions.push_back(*std::move(definition));
    name.written = line;
  }

  void Undefine(const std::string& text) {
    const auto found = names_.find(text);
    if (found == names_.end()) return;
    found->second.may_be_none = true;
    if (conditions_ == 0) found->second.definitions.clear();
  }

  std::unordered_map<std::string, Name> names_;
  int conditions_ = 0;  // that enclose the place
};

bool IsBalanced(const TokenList& tokens) {
  int depth = 0;
  for (const SourceToken& token : tokens) {
    const std::string& text = token.text;
    if (text == "(" || text == "{" || text == "[") ++depth;
    if ((text == ")" || text == "}" || text == "]") && --depth < 0) return false;
  }
  return depth == 0;
}

// Two tokens as one, where they make one; else the second stays beside the first.
void Join(TokenList& to, const SourceToken& token) {
  const bool one = !to.empty() && (IsName(to.back()) || IsNumber(to.back())) &&
                   (IsName(token) || IsNumber(token));
  if (one) {
    to.back().text += token.text;
    to.back().stays = false;
  } else {
    to.push_back(token);
  }
}

struct Work {
  std::size_t left;
  bool Take(std::size_t tokens) {
    left -= std::min(left, tokens);
    return left > 0;
  }
};

// Reads tokens, replaces what is a macro's use, and reads the replacement before what follows.
class Reader {
 public:
  Reader(Table& table, Work& work, int depth) : table_(table), work_(work), depth_(depth) {}

  // `before` is told the place of each token of `code` that is about to be read.
  template <typename Before>
  TokenList Read(const TokenList& code, Before before) {
    TokenList read;
    code_ = &code;
    while (work_.Take(1)) {
      while (!replacements_.empty() && replacements_.back().is_read()) Drop();
      if (replacements_.empty()) before(at_);
      std::optional<SourceToken> token = Next();
      if (!token) break;
      Name* name = table_.Find(*token);
      if (name == nullptr) {
        read.push_back(*std::move(token));
      } else if (name->within > 0) {
        token->stays = true;
        read.push_back(*std::move(token));
      } else {
        Replace(*name, *std::move(token), read);
      }
    }
    while (!replacements_.empty()) Drop();
    return read;
  }

 private:
  struct Replacement {
    TokenList tokens;
    std::size_t at = 0;
    Name* of = nullptr;
    bool is_read() const { return at == tokens.size(); }
  };

  void Drop() {
    if (replacements_.back().of != nullptr) --replacements_.back().of->within;
    replacements_.pop_back();
  }

  std::optional<SourceToken> Next() {
    while (!replacements_.empty()) {
      Replacement& top = replacements_.back();
      if (!top.is_read()) return std::move(top.tokens[top.at++]);
      Drop();
    }
    if (at_ == code_->size()) return std::nullopt;
    return (*code_)[at_++];
  }

  // Nothing is consumed.
  bool ArgumentsFollow() const {
    for (auto top = replacements_.rbegin(); top != replacements_.rend(); ++top) {
      if (!top->is_read()) return Is(top->tokens, top->at, "(");
    }
    return Is(*code_, at_, "(");
  }

  // A use's arguments with their brackets and commas; nothing if they do not end.
  bool TakeArguments(TokenList& taken, std::vector<TokenList>& arguments) {
    int depth = 0;
    arguments.emplace_back();
    while (work_.Take(1)) {
      std::optional<SourceToken> token = Next();
      if (!token) return false;
      taken.push_back(*token);
      const std::string& text = token->text;
      if (text == "(" && ++depth == 1) continue;
      if (text == ")" && --depth == 0) return true;
      if (text == "," && depth == 1) {
        arguments.emplace_back();
      } else {
        arguments.back().push_back(*std::move(token));
      }
    }
    return false;
  }

  void Replace(Name& name, SourceToken token, TokenList& read) {
    const auto takes = [](const Definition& definition) { return definition.takes_arguments; };
    const std::size_t taking = static_cast<std::size_t>(
        std::count_if(name.definitions.begin(), name.definitions.end(), takes));
    if (taking == name.definitions.size() && !ArgumentsFollow()) {
      read.push_back(std::move(token));
      return;
    }
    TokenList taken;
    std::vector<TokenList> arguments;
    if (taking > 0 && ArgumentsFollow() && !TakeArguments(taken, arguments)) {
      read.push_back(std::move(token));
      std::move(taken.begin(), taken.end(), std::back_inserter(read));
      return;
    }
    Replacement replacement{.tokens = {}, .of = &name};
    const bool known = (taking == 0 || taking == name.definitions.size()) &&
                       name.definitions.size() <= kMostDefinitions && depth_ < kDeepest &&
                       Fill(name, token, taken, arguments, replacement.tokens);
    if (!known) {
      token.text = kUnknownMark + token.text;
      replacement.tokens = {std::move(token)};
    }
    if (!work_.Take(replacement.tokens.size())) return;
    ++name.within;
    replacements_.push_back(std::move(replacement));
  }

  // All that the use may become; false if that is more than can be told.
  bool Fill(const Name& name, const SourceToken& use, const TokenList& taken,
            const std::vector<TokenList>& arguments, TokenList& to) {
    if (name.may_be_none) {
      to.push_back(use);
      to.back().stays = true;
      to.insert(to.end(), taken.begin(), taken.end());
    }
    std::vector<TokenList> read;
    for (const TokenList& argument : arguments) {
      read.push_back(Reader(table_, work_, depth_ + 1).Read(argument, [](std::size_t) {}));
    }
    for (const Definition& definition : name.definitions) {
      TokenList one;
      if (!Substitute(definition, use, arguments, read, one)) return false;
      if (name.definitions.size() > 1 && !IsBalanced(one)) return false;
      std::move(one.begin(), one.end(), std::back_inserter(to));
    }
    return true;
  }

  bool Substitute(const Definition& definition, const SourceToken& use,
                  const std::vector<TokenList>& arguments, const std::vector<TokenList>& read,
                  TokenList& to) {
    const std::size_t parameters = definition.parameters.size();
    const bool none = arguments.size() == 1 && arguments[0].empty();
    const std::size_t given = none && parameters != 1 ? 0 : arguments.size();
    const std::size_t least = definition.variadic ? parameters - 1 : parameters;
    if (definition.takes_arguments &&
        (given < least || (given > parameters && !definition.variadic)))
      return false;
    bool left_there = false;  // what a ## would join to
    for (std::size_t i = 0; i < definition.body.size(); ++i) {
      const Definition::Item& item = definition.body[i];
      TokenList part;
      if (item.quoted) {
        part.push_back({.text = "", .line = use.line});
      } else if (item.parameter == Definition::kNoParameter) {
        part.push_back(item.token);
        part.back().line = use.line;
      } else {
        const bool joins =
            item.joined || (i + 1 < definition.body.size() && definition.body[i + 1].joined);
        Append(joins ? arguments : read, item.parameter,
               definition.variadic && item.parameter + 1 == parameters, part);
      }
      if (!work_.Take(part.size() + 1)) return false;
      left_there = item.joined && left_there;
      for (SourceToken& token : part) {
        if (left_there && &token == &part.front()) {
          Join(to, token);
        } else {
          to.push_back(std::move(token));
        }
      }
      left_there = left_there || !part.empty();
    }
    return true;
  }

  static void Append(const std::vector<TokenList>& arguments, std::size_t parameter, bool rest,
                     TokenList& to) {
    for (std::size_t at = parameter; at < arguments.size(); ++at) {
      if (at > parameter) to.push_back({.text = ","});
      to.insert(to.end(), arguments[at].begin(), arguments[at].end());
      if (!rest) return;
    }
  }

  Table& table_;
  Work& work_;
  const int depth_;
  const TokenList* code_ = nullptr;
  std::size_t at_ = 0;
  std::vector<Replacement> replacements_;  // the innermost last
};

}  // namespace

ExpandedCode ExpandMacros(const SourceTokens& source) {
  Table table;
  Work work{.left = kLeastWork + kWorkPerToken * source.code.size()};
  ExpandedCode expanded;
  std::size_t next = 0;
  const auto take_lines = [&](std::size_t at) {
    for (; next < source.directives.size() && source.places[next] <= at; ++next) {
      const DirectiveLine& line = source.directives[next];
      if (line[0].text == "if" || line[0].text == "elif") {
        const TokenList condition(line.begin() + 1, line.end());
        TokenList read = Reader(table, work, 0).Read(condition, [](std::size_t) {});
        std::move(read.begin(), read.end(), std::back_inserter(expanded.conditions));
        expanded.conditions.push_back({.text = ";", .line = line[0].line});
      }
      table.Read(line);
    }
  };
  expanded.code = Reader(table, work, 0).Read(source.code, take_lines);
  expanded.too_much = work.left == 0;
  return expanded;
}

bool IsUnknown(const SourceToken& token) {
  return token.text.size() > 1 && token.text[0] == kUnknownMark;
}

std::string UnknownMacro(const SourceToken& token) { return token.text.substr(1); }

}  // namespace gpusched::device
