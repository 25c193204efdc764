// A PTX module's outline: its functions with parameters and statements, its variables, its header.
//
// Only as much is understood as cutting a launch needs; what an instruction computes is the
// assembler's business. Everything refers to the module's own text by token or by view.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "device/cuda/ptx/tokens.h"
#include "device/device.h"
#include "gpusched/status.h"

namespace gpusched::device::ptx {

using TokenIndex = std::uint32_t;

// In an entry's parameter block as the driver lays it out; offsets from its first byte.
struct EntryParameter {
  std::string_view name;
  std::uint32_t offset = 0, size = 0, alignment = 1;
};

struct Statement {
  enum class Kind : std::uint8_t { kLabel, kInstruction, kDirective, kOpen, kClose };
  Kind kind = Kind::kInstruction;
  TokenIndex first = 0, end = 0;  // without the closing ';' or ':'
  TokenIndex opcode = 0;          // kInstruction: past the guard "@!%p"; else first
  bool guarded() const { return kind == Kind::kInstruction && opcode != first; }
};

struct Function {
  std::string_view name{};
  bool is_entry = false;
  bool is_extern = false;
  bool has_body = false;
  TokenIndex first = 0, end = 0;  // the whole item: linkage to '}' or ';'
  TokenIndex name_at = 0;
  TokenIndex open_parameters = 0;  // '(' of the parameter list; 0: there is none
  TokenIndex close_parameters = 0;
  TokenIndex body = 0;                         // '{'
  std::vector<EntryParameter> parameters{};    // of an entry
  bool opaque_parameters = false;              // of a kind whose layout is not known
  std::vector<std::string_view> directives{};  // between parameters and body: ".maxntid"
  Dim3 required_block{0, 0, 0};                // .reqntid; zeros: any
  std::uint64_t max_block_threads = 0;         // .maxntid; 0: not said
  std::uint32_t first_statement = 0, end_statement = 0;

  std::uint32_t parameter_bytes() const {
    return parameters.empty() ? 0 : parameters.back().offset + parameters.back().size;
  }
};

enum class Space : std::uint8_t { kGlobal, kConstant, kShared, kLocal, kOther };

struct Variable {
  std::string_view name{};
  Space space = Space::kGlobal;
  bool is_extern = false;
  std::uint32_t alignment = 1;
  std::uint64_t bytes = 0;  // 0: an extern array, or of a size that is not known
  TokenIndex first = 0, end = 0;
  TokenIndex initializer = 0;  // past '='; 0: there is none
};

class Module {
 public:
  // INVALID_ARGUMENT (BAD_MODULE) with the line where the text is none.
  static Result<Module> Parse(std::string text);
  // The same without statements; of a body's tokens only braces and block ids are there.
  static Result<Module> ParseOutline(std::string text);

  std::string_view text() const { return *text_; }
  std::uint32_t version() const { return version_; }   // 90 for ".version 9.0"
  std::string_view target() const { return target_; }  // "sm_90a"
  // Where a declaration may be put that everything after it sees.
  std::uint32_t header_end() const { return header_end_; }
  const std::vector<Token>& tokens() const { return tokens_; }
  const std::vector<Function>& functions() const { return functions_; }
  const std::vector<Variable>& variables() const { return variables_; }
  // .alias, .pragma, .file, .section and the like, each [first, end) in tokens.
  struct Other {
    TokenIndex first = 0, end = 0;
  };
  const std::vector<Other>& others() const { return others_; }
  const std::vector<Statement>& statements() const { return statements_; }

  std::string_view Text(TokenIndex at) const { return Text(tokens_[at]); }
  std::string_view Text(const Token& token) const {
    return std::string_view(*text_).substr(token.begin, token.size);
  }
  // "line 12", where the token stands.
  std::string Place(TokenIndex at) const;
  bool IsMark(TokenIndex at, char mark) const {
    return tokens_[at].first == mark && tokens_[at].kind == TokenKind::kMark;
  }
  // The function of that name with a body where there is one, else its declaration; nothing for a
  // name that is none.
  std::optional<std::uint32_t> FindFunction(std::string_view name) const;
  std::optional<std::uint32_t> FindVariable(std::string_view name) const;
  // ".global" variables that a kernel can change: two copies of the module would disagree.
  bool has_mutable_globals() const;

 private:
  friend class ModuleReader;
  Module() = default;

  std::unique_ptr<const std::string> text_;  // does not move when the module does
  std::uint32_t version_ = 0;
  std::string_view target_;
  std::uint32_t header_end_ = 0;
  std::vector<Token> tokens_;
  std::vector<std::uint32_t> line_ends_;
  std::vector<Function> functions_;
  std::vector<Variable> variables_;
  std::vector<Other> others_;
  std::vector<Statement> statements_;
  std::unordered_map<std::string_view, std::uint32_t> function_by_name_, variable_by_name_;
};

// "10" and "0x0a"; nothing for what is no unsigned integer of 64 bits.
std::optional<std::uint64_t> ParseInteger(std::string_view text);

// 4 for ".u32", 16 for ".b128"; 0 for what is no fundamental type.
std::uint32_t TypeBytes(std::string_view type);

}  // namespace gpusched::device::ptx
