// Reads a module item by item and a body statement by statement, with no recursion.
#include "device/cuda/ptx/module.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "gpusched/reasons.h"

namespace gpusched::device::ptx {
namespace {

// Of one variable or parameter: far above any device's memory, far below an overflow.
constexpr std::uint64_t kMostVariableBytes = std::uint64_t{1} << 40;
// CUDA's own bound on a kernel's parameters is 32,764 bytes.
constexpr std::uint64_t kMostParameterBytes = 1 << 20;

constexpr std::uint32_t kMostAlignment = 1 << 16;

Space SpaceOf(std::string_view word) {
  if (word == ".global") return Space::kGlobal;
  if (word == ".const") return Space::kConstant;
  if (word == ".local") return Space::kLocal;
  if (word.starts_with(".shared")) return Space::kShared;
  return Space::kOther;
}

bool IsLinkage(std::string_view word) {
  return word == ".visible" || word == ".extern" || word == ".weak" || word == ".common";
}
bool IsVariable(std::string_view word) {
  return word == ".global" || word == ".const" || word == ".local" || word == ".tex" ||
         word == ".param" || word == ".reg" || word == ".sreg" || word.starts_with(".shared");
}

std::uint64_t RoundUp(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

std::optional<std::uint64_t> ParseInteger(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  if (text.ends_with('U')) text.remove_suffix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::uint32_t TypeBytes(std::string_view type) {
  if (type.size() < 3 || type[0] != '.') return 0;
  switch (type[1]) {
    case 'u':
    case 's':
    case 'b':
    case 'f':
      if (type == ".f16x2") return 4;
      if (type.substr(2) == "8") return 1;
      if (type.substr(2) == "16") return 2;
      if (type.substr(2) == "32") return 4;
      if (type.substr(2) == "64") return 8;
      if (type.substr(2) == "128") return 16;
      break;
  }
  return 0;
}

class ModuleReader {
 public:
  ModuleReader(std::string text, bool outline) : outline_(outline) {
    module_.text_ = std::make_unique<const std::string>(std::move(text));
  }

  Result<Module> Read() {
    Result<std::vector<Token>> tokens =
        outline_ ? TokenizeOutline(*module_.text_) : Tokenize(*module_.text_);
    if (!tokens.ok()) return tokens.status();
    module_.tokens_ = *std::move(tokens);
    if (!outline_) {
      FindLines();
      module_.statements_.reserve(module_.tokens_.size() / 6);
    }
    while (!AtEnd() && ok_) ReadItem();
    if (ok_ && module_.version_ == 0) Fail("there is no .version: this is no PTX");
    if (ok_ && module_.target_.empty()) Fail("there is no .target");
    if (!ok_) return status_;
    return std::move(module_);
  }

 private:
  void FindLines() {
    const std::string& text = *module_.text_;
    for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
      module_.line_ends_.push_back(static_cast<std::uint32_t>(at));
    }
  }
  bool AtEnd() const { return module_.tokens_[at_].kind == TokenKind::kEnd; }
  bool Is(char mark) const { return module_.IsMark(at_, mark); }
  bool IsWord() const { return module_.tokens_[at_].kind == TokenKind::kWord; }
  bool IsNumber() const { return module_.tokens_[at_].kind == TokenKind::kNumber; }
  std::string_view Text() const { return module_.Text(at_); }
  std::uint32_t EndOf(TokenIndex at) const {
    return module_.tokens_[at].begin + module_.tokens_[at].size;
  }
  bool Take(char mark) {
    if (!Is(mark)) return false;
    ++at_;
    return true;
  }
  void Fail(std::string_view what) {
    if (!ok_) return;
    ok_ = false;
    status_ = BadPtx(*module_.text_, module_.tokens_[at_].begin, what);
  }
  void Expect(char mark) {
    if (!Take(mark)) Fail("expected '" + std::string(1, mark) + "'");
  }
  // To the mark at depth zero of all brackets, not past it.
  void SkipTo(char mark) {
    int depth = 0;
    for (; !AtEnd(); ++at_) {
      if (module_.tokens_[at_].kind != TokenKind::kMark) continue;
      const char c = module_.tokens_[at_].first;
      if (depth == 0 && c == mark) return;
      if (c == '(' || c == '{' || c == '[') ++depth;
      if (c == ')' || c == '}' || c == ']') --depth;
      if (depth < 0) break;
    }
    Fail("expected '" + std::string(1, mark) + "' before here");
  }

  void ReadItem();
  void ReadVersion();
  void ReadVariable(TokenIndex first, bool is_extern);
  void ReadFunction(TokenIndex first, bool is_extern);
  void ReadEntryParameters(Function& function);
  void ReadDirectives(Function& function);
  void ReadBody(Function& function);
  void ReadStatement();
  void ReadInstruction();
  void SkipLocation();
  std::uint64_t ReadArraySize();
  void Declare(Function function);

  const bool outline_;
  Module module_;
  TokenIndex at_ = 0;
  int depth_ = 0;  // of braces in a body
  bool ok_ = true;
  Status status_;
};

void ModuleReader::ReadItem() {
  const TokenIndex first = at_;
  if (Take(';')) return;
  if (Is('@') || !IsWord()) return Fail("expected a directive");
  bool is_extern = false;
  while (IsLinkage(Text())) {
    is_extern = is_extern || Text() == ".extern";
    ++at_;
  }
  const std::string_view word = Text();
  if (module_.version_ == 0 && word != ".version") return Fail("expected .version: no PTX");
  if (word == ".version") return ReadVersion();
  if (word == ".entry" || word == ".func") return ReadFunction(first, is_extern);
  if (IsVariable(word)) return ReadVariable(first, is_extern);
  ++at_;
  if (word == ".target") {
    if (!IsWord()) return Fail("expected a target such as sm_75");
    module_.target_ = Text();
    for (++at_; Take(',') && IsWord();) ++at_;
    module_.header_end_ = EndOf(at_ - 1);
    return;
  }
  if (word == ".address_size") {
    if (Text() != "64") return Fail("only 64-bit PTX is known");
    module_.header_end_ = EndOf(at_++);
    return;
  }
  if (word == ".file") {
    if (IsNumber()) ++at_;
    if (module_.tokens_[at_].kind == TokenKind::kString) ++at_;
    while (Take(',')) {
      if (IsNumber()) ++at_;
    }
  } else if (word == ".section") {
    if (IsWord()) ++at_;
    Expect('{');
    SkipTo('}');
    Expect('}');
  } else if (word == ".alias" || word == ".pragma") {
    SkipTo(';');
    Expect(';');
  } else {
    --at_;
    return Fail("'" + std::string(word.substr(0, 40)) + "' is no directive of a module");
  }
  module_.others_.push_back({.first = first, .end = at_});
}

void ModuleReader::ReadVersion() {
  if (module_.version_ != 0) return Fail("a second .version");
  ++at_;
  const std::string_view text = Text();
  const std::size_t dot = text.find('.');
  const auto major = ParseInteger(text.substr(0, dot));
  const auto minor = dot == std::string_view::npos ? std::optional<std::uint64_t>()
                                                   : ParseInteger(text.substr(dot + 1));
  if (!major || !minor || *major == 0 || *major > 99 || *minor > 9) {
    return Fail("expected a version such as 7.0");
  }
  module_.version_ = static_cast<std::uint32_t>(*major * 10 + *minor);
  module_.header_end_ = EndOf(at_++);
}

// "[4][2]" -> 8; "" -> 1; "[]" -> 0.
std::uint64_t ModuleReader::ReadArraySize() {
  std::uint64_t count = 1;
  while (Take('[')) {
    if (Take(']')) {
      count = 0;
      continue;
    }
    const auto extent = ParseInteger(Text());
    if (!extent || *extent > kMostVariableBytes) {
      Fail("expected an array's size");
      return 0;
    }
    count = std::min(count * std::max<std::uint64_t>(*extent, 1), kMostVariableBytes);
    if (*extent == 0) count = 0;
    ++at_;
    Expect(']');
    if (!ok_) return 0;
  }
  return count;
}

void ModuleReader::ReadVariable(TokenIndex first, bool is_extern) {
  Variable variable{.space = SpaceOf(Text()), .is_extern = is_extern, .first = first};
  std::uint32_t lanes = 1, bytes = 0;
  bool aligned = false;
  for (++at_; IsWord() && Text().starts_with('.'); ++at_) {
    const std::string_view word = Text();
    if (word == ".align") {
      ++at_;
      const auto alignment = ParseInteger(Text());
      if (!alignment || *alignment == 0 || *alignment > kMostAlignment) {
        return Fail("expected an alignment");
      }
      variable.alignment = static_cast<std::uint32_t>(*alignment);
      aligned = true;
    } else if (word == ".attribute") {
      ++at_;
      if (!Is('(')) return Fail("expected '('");
      ++at_;
      SkipTo(')');
    } else if (word == ".v2" || word == ".v4") {
      lanes = word == ".v2" ? 2 : 4;
    } else {
      bytes = TypeBytes(word) * lanes;
      if (bytes == 0) bytes = 8;  // .texref, .samplerref, .surfref: a handle
    }
    if (!ok_) return;
  }
  if (!IsWord()) return Fail("expected a variable's name");
  variable.name = Text();
  ++at_;
  if (!aligned && bytes > 0) variable.alignment = bytes;
  variable.bytes = ReadArraySize() * bytes;
  if (!ok_) return;
  if (Take('=')) variable.initializer = at_;
  SkipTo(';');
  Expect(';');
  variable.end = at_;
  module_.variable_by_name_.emplace(variable.name, module_.variables_.size());
  module_.variables_.push_back(variable);
}

void ModuleReader::ReadFunction(TokenIndex first, bool is_extern) {
  Function function{.is_entry = Text() == ".entry", .is_extern = is_extern, .first = first};
  for (++at_; Text() == ".attribute" || Text() == ".noreturn"; ++at_) {
    if (Text() == ".noreturn") continue;
    ++at_;
    SkipTo(')');
    if (!ok_) return;
  }
  if (Take('(')) {  // what it returns
    SkipTo(')');
    Expect(')');
  }
  if (!IsWord() || Text().starts_with('.')) return Fail("expected a function's name");
  function.name = Text();
  function.name_at = at_++;
  if (Is('(')) {
    function.open_parameters = at_++;
    if (function.is_entry) {
      ReadEntryParameters(function);
    } else {
      SkipTo(')');
    }
    function.close_parameters = at_;
    Expect(')');
  }
  if (!ok_) return;
  ReadDirectives(function);
  if (!ok_) return;
  if (Take(';')) {
    function.end = at_;
    return Declare(std::move(function));
  }
  if (!Is('{')) return Fail("expected a function's body");
  ReadBody(function);
  if (ok_) Declare(std::move(function));
}

void ModuleReader::Declare(Function function) {
  const auto index = static_cast<std::uint32_t>(module_.functions_.size());
  const auto [known, is_new] = module_.function_by_name_.emplace(function.name, index);
  if (!is_new && function.has_body) {
    if (module_.functions_[known->second].has_body) return Fail("a second body of one function");
    known->second = index;
  }
  module_.functions_.push_back(std::move(function));
}

void ModuleReader::ReadEntryParameters(Function& function) {
  while (ok_ && !Is(')')) {
    if (Text() != ".param") return Fail("expected .param");
    EntryParameter parameter;
    std::uint32_t type = 0;
    bool pointer = false, aligned = false;
    for (++at_; IsWord() && Text().starts_with('.'); ++at_) {
      if (Text() == ".align") {
        ++at_;
        const auto alignment = ParseInteger(Text());
        if (!alignment || *alignment == 0 || *alignment > kMostAlignment) {
          return Fail("expected an alignment");
        }
        // After .ptr it speaks of what the pointer points to.
        if (!pointer) {
          parameter.alignment = static_cast<std::uint32_t>(*alignment);
          aligned = true;
        }
      } else if (Text() == ".ptr") {
        pointer = true;
      } else if (const std::uint32_t bytes = TypeBytes(Text()); bytes != 0) {
        type = bytes;
      } else if (!pointer) {
        function.opaque_parameters = true;
      }
    }
    if (!IsWord()) return Fail("expected a parameter's name");
    parameter.name = Text();
    ++at_;
    if (!aligned) parameter.alignment = std::max(type, 1u);
    const std::uint64_t bytes = ReadArraySize() * type;
    const std::uint64_t offset = RoundUp(function.parameter_bytes(), parameter.alignment);
    if (!ok_) return;
    if (bytes == 0) function.opaque_parameters = true;
    if (bytes + offset > kMostParameterBytes) return Fail("parameters of more than 1 MiB");
    parameter.offset = static_cast<std::uint32_t>(offset);
    parameter.size = static_cast<std::uint32_t>(bytes);
    function.parameters.push_back(parameter);
    if (!Take(',') && !Is(')')) return Fail("expected ',' or ')'");
  }
}

void ModuleReader::ReadDirectives(Function& function) {
  while (IsWord() && Text().starts_with('.')) {
    const std::string_view word = Text();
    function.directives.push_back(word);
    ++at_;
    if (word == ".pragma") {
      SkipTo(';');
      Expect(';');
      if (!ok_) return;
      continue;
    }
    if (word == ".attribute") {
      if (Take('(')) SkipTo(')');
      if (ok_) Expect(')');
      if (!ok_) return;
      continue;
    }
    std::uint64_t extents[3] = {1, 1, 1};
    for (int i = 0; IsNumber(); ++i) {
      const auto extent = ParseInteger(Text());
      if (!extent || *extent > UINT32_MAX) return Fail("expected a number of 32 bits");
      if (i < 3) extents[i] = *extent;
      ++at_;
      if (!Take(',')) break;
    }
    const Dim3 dim{static_cast<std::uint32_t>(extents[0]), static_cast<std::uint32_t>(extents[1]),
                   static_cast<std::uint32_t>(extents[2])};
    if (word == ".reqntid") function.required_block = dim;
    if (word == ".maxntid") function.max_block_threads = Volume(dim);
  }
}

void ModuleReader::ReadBody(Function& function) {
  function.has_body = true;
  function.body = at_;
  function.first_statement = static_cast<std::uint32_t>(module_.statements_.size());
  if (outline_) {
    ++at_;
    SkipTo('}');
    if (ok_) Expect('}');
    function.end_statement = function.first_statement;
    function.end = at_;
    return;
  }
  depth_ = 0;
  do {
    ReadStatement();
  } while (ok_ && depth_ > 0);
  function.end_statement = static_cast<std::uint32_t>(module_.statements_.size());
  function.end = at_;
}

void ModuleReader::ReadStatement() {
  Statement statement{.first = at_};
  if (AtEnd()) return Fail("a function's body has no end");
  if (Take(';')) return;
  if (Take('{')) {
    ++depth_;
    statement.kind = Statement::Kind::kOpen;
  } else if (Take('}')) {
    --depth_;
    statement.kind = Statement::Kind::kClose;
  } else if (Is('@')) {
    return ReadInstruction();
  } else if (!IsWord()) {
    return Fail("expected an instruction");
  } else if (Text().starts_with('.')) {
    statement.kind = Statement::Kind::kDirective;
    if (Text() == ".loc") {
      SkipLocation();
    } else {
      SkipTo(';');
      if (ok_)
        module_.statements_.push_back({statement.kind, statement.first, at_, statement.first});
      return Expect(';');
    }
  } else if (module_.IsMark(at_ + 1, ':')) {
    statement.kind = Statement::Kind::kLabel;
    at_ += 2;
    module_.statements_.push_back({statement.kind, statement.first, at_ - 1, statement.first});
    return;
  } else {
    return ReadInstruction();
  }
  if (ok_) module_.statements_.push_back({statement.kind, statement.first, at_, statement.first});
}

void ModuleReader::ReadInstruction() {
  const TokenIndex first = at_;
  if (Take('@')) {
    Take('!');
    if (!IsWord()) return Fail("expected a guard's predicate");
    ++at_;
  }
  const TokenIndex opcode = at_;
  if (!IsWord()) return Fail("expected an opcode");
  SkipTo(';');
  if (!ok_) return;
  module_.statements_.push_back({Statement::Kind::kInstruction, first, at_, opcode});
  ++at_;
}

// ".loc 1 2 3[, function_name $name[+n], inlined_at 1 2 3]": the one statement with no ';'.
void ModuleReader::SkipLocation() {
  const auto skip_numbers = [this] {
    while (IsNumber()) ++at_;
  };
  ++at_;
  skip_numbers();
  while (Take(',')) {
    const bool names = Text() == "function_name";
    if (IsWord()) ++at_;
    if (names && IsWord()) ++at_;
    if (Take('+') || IsNumber()) skip_numbers();
  }
}

Result<Module> Module::Parse(std::string text) {
  return ModuleReader(std::move(text), /*outline=*/false).Read();
}

Result<Module> Module::ParseOutline(std::string text) {
  return ModuleReader(std::move(text), /*outline=*/true).Read();
}

std::string Module::Place(TokenIndex at) const {
  const auto end = std::lower_bound(line_ends_.begin(), line_ends_.end(), tokens_[at].begin);
  return "line " + std::to_string(end - line_ends_.begin() + 1);
}

std::optional<std::uint32_t> Module::FindFunction(std::string_view name) const {
  const auto found = function_by_name_.find(name);
  if (found == function_by_name_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint32_t> Module::FindVariable(std::string_view name) const {
  const auto found = variable_by_name_.find(name);
  if (found == variable_by_name_.end()) return std::nullopt;
  return found->second;
}

bool Module::has_mutable_globals() const {
  // nvcc names string literals $str; tables that a kernel only reads are not told apart.
  return std::any_of(variables_.begin(), variables_.end(), [](const Variable& variable) {
    return variable.space == Space::kGlobal && !variable.name.starts_with("$str");
  });
}

}  // namespace gpusched::device::ptx
