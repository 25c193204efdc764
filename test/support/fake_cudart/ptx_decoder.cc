// Decodes each function's statements: opcodes with their modifiers, operands with their meaning.
#include <algorithm>
#include <utility>

#include "device/cuda/ptx/module.h"
#include "gpusched/reasons.h"
#include "support/fake_cudart/ptx_code.h"
#include "support/fake_cudart/ptx_names.h"
#include "support/fake_cudart/ptx_variables.h"

namespace gpusched::test::ptx {
namespace {

namespace text = device::ptx;
using text::Module;
using text::Statement;
using text::TokenIndex;
using text::TokenKind;

// ".align 8 .b8 name[24]" and "%p<5>".
struct Declaration {
  std::string_view name;
  std::uint32_t count = 0;  // of "%p<5>"
  std::uint64_t bytes = 0, alignment = 1;
};

class Declarations {
 public:
  // From `at` past the state space to `end`; names separated by commas share the type.
  static std::vector<Declaration> Read(const Module& module, TokenIndex at, TokenIndex end) {
    std::vector<Declaration> found;
    std::uint64_t type = 0, alignment = 0, lanes = 1;
    for (; at < end; ++at) {
      const std::string_view word = module.Text(at);
      if (word == ".align") {
        alignment = text::ParseInteger(module.Text(++at)).value_or(1);
      } else if (word == ".v2" || word == ".v4") {
        lanes = word == ".v2" ? 2 : 4;
      } else if (word.starts_with('.')) {
        if (const std::uint32_t bytes = text::TypeBytes(word); bytes != 0) type = bytes;
      } else if (module.IsMark(at, '[')) {
        if (!found.empty() && !module.IsMark(at + 1, ']')) {
          found.back().bytes *= text::ParseInteger(module.Text(at + 1)).value_or(0);
        } else if (!found.empty()) {
          found.back().bytes = 0;
        }
      } else if (module.IsMark(at, '<')) {
        if (!found.empty()) {
          found.back().count =
              static_cast<std::uint32_t>(text::ParseInteger(module.Text(at + 1)).value_or(0));
        }
      } else if (module.tokens()[at].kind == TokenKind::kWord) {
        found.push_back(
            {.name = word,
             .bytes = std::max<std::uint64_t>(type, 1) * lanes,
             .alignment = alignment != 0 ? alignment : std::max<std::uint64_t>(type, 1)});
      } else if (module.IsMark(at, '=')) {
        break;
      }
    }
    return found;
  }
};

class FunctionDecoder {
 public:
  FunctionDecoder(const Module& module, const text::Function& function, const Meanings& globals,
                  DecodedProgram& program)
      : module_(module), source_(function), globals_(globals), program_(program) {}

  Status Decode(CodeFunction& into);

 private:
  void ReadFormals();
  void Declare(const Statement& statement);
  Status Add(const Statement& statement);
  Status ReadOperands(const Statement& statement, Op& op);
  Status ReadCall(const Statement& statement, Op& op);
  Result<Operand> ReadOperand(TokenIndex& at, TokenIndex end);
  Result<Operand> ReadAddress(TokenIndex& at, TokenIndex end);
  Result<Operand> NameOperand(TokenIndex at);
  Status Resolve();
  const Meaning* Find(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->find(name);
      if (found != scope->end()) return &found->second;
    }
    const auto found = globals_.find(name);
    return found == globals_.end() ? nullptr : &found->second;
  }
  std::uint32_t NewRegister() { return function_->registers++; }
  Actual NewParam(const Declaration& declaration, Meanings& scope) {
    const auto offset = static_cast<std::uint32_t>(
        RoundUp(function_->frame_bytes, std::max<std::uint64_t>(declaration.alignment, 1)));
    const auto bytes = static_cast<std::uint32_t>(std::min(declaration.bytes, kMostVariableBytes));
    function_->frame_bytes = offset + bytes;
    scope[std::string(declaration.name)] = {Meaning::Kind::kParam, offset, bytes};
    return {.offset = offset, .bytes = bytes};
  }

  const Module& module_;
  const text::Function& source_;
  const Meanings& globals_;
  DecodedProgram& program_;
  CodeFunction* function_ = nullptr;
  std::vector<Meanings> scopes_{1};
  // Labels by scope, for branches that name the same label in braces of their own.
  struct Label {
    std::uint32_t op, scope;
  };
  std::map<std::string_view, std::vector<Label>> labels_;
  std::map<std::string_view, std::vector<std::string_view>> target_lists_;
  struct Pending {
    std::uint32_t op, scope;
    std::string_view name;
  };
  std::vector<Pending> pending_;
  std::vector<std::uint32_t> scope_parents_{0};
  std::uint32_t scope_ = 0;
  std::string_view last_label_;
};

void FunctionDecoder::ReadFormals() {
  const auto read = [&](TokenIndex from, TokenIndex to, auto take) {
    for (TokenIndex at = from; at < to; ++at) {
      if (module_.Text(at) != ".param") continue;
      TokenIndex end = at + 1;
      while (end < to && !module_.IsMark(end, ',')) ++end;
      for (const Declaration& each : Declarations::Read(module_, at + 1, end)) take(each);
    }
  };
  if (source_.open_parameters != 0) {
    read(source_.open_parameters, source_.close_parameters, [&](const Declaration& each) {
      function_->formals.push_back(NewParam(each, scopes_.front()));
    });
  }
  read(source_.first, source_.name_at,
       [&](const Declaration& each) { function_->result = NewParam(each, scopes_.front()); });
}

void FunctionDecoder::Declare(const Statement& statement) {
  const std::string_view space = module_.Text(statement.first);
  Meanings& scope = scopes_.back();
  if (space == ".branchtargets") {
    auto& list = target_lists_[last_label_];
    for (TokenIndex at = statement.first + 1; at < statement.end; ++at) {
      if (module_.tokens()[at].kind == TokenKind::kWord) list.push_back(module_.Text(at));
    }
    return;
  }
  for (const Declaration& each : Declarations::Read(module_, statement.first + 1, statement.end)) {
    if (space == ".reg") {
      for (std::uint32_t i = 0; i < std::max(each.count, 1u) && i < 1u << 20; ++i) {
        scope[std::string(each.name) + (each.count > 0 ? std::to_string(i) : "")] = {
            Meaning::Kind::kRegister, NewRegister(), 0};
      }
    } else if (space == ".param") {
      NewParam(each, scope);
    } else if (space == ".local") {
      const auto offset = static_cast<std::uint32_t>(RoundUp(function_->local_bytes, 16));
      function_->local_bytes =
          offset + static_cast<std::uint32_t>(std::min(each.bytes, kMostVariableBytes));
      scope[std::string(each.name)] = {Meaning::Kind::kLocal, offset, 0};
    } else if (space.starts_with(".shared")) {
      const std::uint64_t offset =
          RoundUp(program_.shared_bytes, std::max<std::uint64_t>(each.alignment, 1));
      program_.shared_bytes = offset + std::min(each.bytes, kMostVariableBytes);
      scope[std::string(each.name)] = {Meaning::Kind::kShared, offset, 0};
    }
  }
}

Result<Operand> FunctionDecoder::NameOperand(TokenIndex at) {
  const std::string_view word = module_.Text(at);
  Operand operand;
  if (const auto special = SpecialNamed(word)) {
    operand.kind = Operand::Kind::kSpecial;
    operand.value = static_cast<std::uint64_t>(*special);
    return operand;
  }
  const Meaning* meaning = Find(word);
  if (meaning == nullptr) return Unknown(module_, at, "the name '" + std::string(word) + "'");
  operand.value = meaning->value;
  switch (meaning->kind) {
    case Meaning::Kind::kRegister: operand.kind = Operand::Kind::kRegister; break;
    case Meaning::Kind::kParam: operand.kind = Operand::Kind::kParam; break;
    case Meaning::Kind::kLocal: operand.kind = Operand::Kind::kLocal; break;
    case Meaning::Kind::kShared: operand.kind = Operand::Kind::kImmediate; break;
    case Meaning::Kind::kGlobal:
      operand.kind = Operand::Kind::kImmediate;
      operand.value += reinterpret_cast<std::uint64_t>(program_.memory.data());
      break;
    case Meaning::Kind::kFunction:
      operand.kind = Operand::Kind::kImmediate;
      operand.value += kFunctionWindow;
      break;
  }
  return operand;
}

// "base", "base+4", "base+-4", at the '[' on entry and past the ']' on return.
Result<Operand> FunctionDecoder::ReadAddress(TokenIndex& at, TokenIndex end) {
  ++at;
  Result<Operand> operand = ReadOperand(at, end);
  if (!operand.ok()) return operand;
  bool negative = false;
  for (; at < end && !module_.IsMark(at, ']'); ++at) {
    if (module_.IsMark(at, '-')) negative = true;
    if (module_.tokens()[at].kind != TokenKind::kNumber) continue;
    const auto offset = static_cast<std::int64_t>(Literal(module_.Text(at)).value_or(0));
    operand->offset = negative ? -offset : offset;
  }
  ++at;
  return operand;
}

Result<Operand> FunctionDecoder::ReadOperand(TokenIndex& at, TokenIndex end) {
  Operand operand;
  if (at >= end) return Unknown(module_, at - 1, "an operand that is not there");
  if (module_.IsMark(at, '[')) return ReadAddress(at, end);
  if (module_.IsMark(at, '{')) {
    std::vector<Operand> lanes;
    for (++at; at < end && !module_.IsMark(at, '}');) {
      Result<Operand> lane = ReadOperand(at, end);
      if (!lane.ok()) return lane;
      lanes.push_back(*lane);
      if (module_.IsMark(at, ',')) ++at;
    }
    ++at;
    operand.kind = Operand::Kind::kVector;
    operand.value = function_->pool.size();
    operand.count = static_cast<std::uint32_t>(lanes.size());
    function_->pool.insert(function_->pool.end(), lanes.begin(), lanes.end());
    return operand;
  }
  const bool negated = module_.IsMark(at, '!'), negative = module_.IsMark(at, '-');
  if (negated || negative) ++at;
  if (module_.tokens()[at].kind == TokenKind::kNumber) {
    const auto literal = Literal(module_.Text(at));
    if (!literal) return Unknown(module_, at, "the number '" + std::string(module_.Text(at)) + "'");
    operand.kind = Operand::Kind::kImmediate;
    operand.value = negative ? 0 - *literal : *literal;
    ++at;
    return operand;
  }
  if (module_.Text(at) == "_") {
    ++at;
    return operand;
  }
  Result<Operand> named = NameOperand(at);
  ++at;
  if (named.ok()) named->negated = negated;
  return named;
}

Status FunctionDecoder::ReadOperands(const Statement& statement, Op& op) {
  for (TokenIndex at = statement.opcode + 1; at < statement.end;) {
    Result<Operand> operand = ReadOperand(at, statement.end);
    if (!operand.ok()) return operand.status();
    op.operands.push_back(*operand);
    if (at < statement.end && module_.IsMark(at, '|')) {
      Result<Operand> second = ReadOperand(++at, statement.end);
      if (!second.ok()) return second.status();
      if (second->kind == Operand::Kind::kRegister) {
        op.second = static_cast<std::uint32_t>(second->value);
      }
    }
    if (at < statement.end && !module_.IsMark(at, ',')) {
      return Unknown(module_, at, "the operand at '" + std::string(module_.Text(at)) + "'");
    }
    ++at;
  }
  return Status::Ok();
}

// "(result), callee, (a, b), prototype".
Status FunctionDecoder::ReadCall(const Statement& statement, Op& op) {
  TokenIndex at = statement.opcode + 1;
  const auto read_list = [&](auto take) -> Status {
    for (++at; at < statement.end && !module_.IsMark(at, ')'); ++at) {
      if (module_.IsMark(at, ',')) continue;
      const Meaning* meaning = Find(module_.Text(at));
      if (meaning == nullptr || meaning->kind != Meaning::Kind::kParam) {
        return Unknown(module_, at, "a call with anything but .param variables");
      }
      take(Actual{.offset = static_cast<std::uint32_t>(meaning->value), .bytes = meaning->bytes});
    }
    ++at;
    return Status::Ok();
  };
  if (module_.IsMark(at, '(')) {
    if (Status status = read_list([&](Actual each) { op.result = each; }); !status.ok()) {
      return status;
    }
    ++at;  // ','
  }
  Result<Operand> callee = NameOperand(at);
  if (!callee.ok()) return callee.status();
  if (callee->kind == Operand::Kind::kImmediate && callee->value >= kFunctionWindow &&
      callee->value < kFunctionWindow + kWindowBytes) {
    op.callee = static_cast<std::int64_t>(callee->value - kFunctionWindow);
  } else {
    op.operands.push_back(*callee);
  }
  ++at;
  if (at < statement.end && module_.IsMark(at, ',')) ++at;
  if (at < statement.end && module_.IsMark(at, '(')) {
    return read_list([&](Actual each) { op.arguments.push_back(each); });
  }
  return Status::Ok();
}

Status FunctionDecoder::Add(const Statement& statement) {
  std::string_view opcode = module_.Text(statement.opcode);
  Op op;
  op.token = statement.opcode;
  const std::string_view base = opcode.substr(0, opcode.find('.'));
  const auto code = CodeNamed(base);
  if (!code) return Unknown(module_, statement.opcode, "the opcode '" + std::string(base) + "'");
  op.code = *code;
  opcode.remove_prefix(base.size());
  int types = 0;
  while (!opcode.empty()) {
    opcode.remove_prefix(1);
    const std::string_view word = opcode.substr(0, opcode.find('.'));
    opcode.remove_prefix(word.size());
    if (const auto type = TypeNamed(word)) {
      (types++ == 0 ? op.type : op.from) = *type;
    } else if (const auto space = SpaceNamed(word); space && op.space == StateSpace::kGeneric) {
      op.space = *space;
    } else if (word == "v2" || word == "v4") {
      op.lanes = word == "v2" ? 2 : 4;
    } else {
      op.modifiers.push_back(word);
    }
  }
  if (types == 1) op.from = op.type;
  if (statement.guarded()) {
    op.guard_negated = module_.IsMark(statement.first + 1, '!');
    Result<Operand> guard = NameOperand(statement.opcode - 1);
    if (!guard.ok()) return guard.status();
    op.guard = static_cast<std::uint32_t>(guard->value);
  }
  const auto index = static_cast<std::uint32_t>(function_->ops.size());
  if (op.code == Code::k_bra) {
    pending_.push_back({index, scope_, module_.Text(statement.end - 1)});
  } else if (op.code == Code::k_brx) {
    Result<Operand> which = NameOperand(statement.opcode + 1);
    if (!which.ok()) return which.status();
    op.operands.push_back(*which);
    pending_.push_back({index, scope_, module_.Text(statement.end - 1)});
  } else if (op.code == Code::k_call) {
    if (Status status = ReadCall(statement, op); !status.ok()) return status;
  } else if (Status status = ReadOperands(statement, op); !status.ok()) {
    return status;
  }
  function_->ops.push_back(std::move(op));
  return Status::Ok();
}

Status FunctionDecoder::Resolve() {
  const auto find = [&](std::string_view name,
                        std::uint32_t scope) -> std::optional<std::uint32_t> {
    const auto found = labels_.find(name);
    if (found == labels_.end()) return std::nullopt;
    for (;; scope = scope_parents_[scope]) {
      for (const Label& label : found->second) {
        if (label.scope == scope) return label.op;
      }
      if (scope == 0) return std::nullopt;
    }
  };
  for (const Pending& each : pending_) {
    std::vector<std::string_view> names{each.name};
    if (function_->ops[each.op].code == Code::k_brx) names = target_lists_[each.name];
    for (std::string_view name : names) {
      const auto target = find(name, each.scope);
      if (!target) return Unknown(module_, source_.first, "the label '" + std::string(name) + "'");
      function_->ops[each.op].targets.push_back(*target);
    }
  }
  return Status::Ok();
}

Status FunctionDecoder::Decode(CodeFunction& into) {
  function_ = &into;
  ReadFormals();
  for (std::uint32_t i = source_.first_statement; i < source_.end_statement; ++i) {
    const Statement& statement = module_.statements()[i];
    switch (statement.kind) {
      case Statement::Kind::kOpen:
        scopes_.emplace_back();
        scope_parents_.push_back(scope_);
        scope_ = static_cast<std::uint32_t>(scope_parents_.size() - 1);
        break;
      case Statement::Kind::kClose:
        scopes_.pop_back();
        scope_ = scope_parents_[scope_];
        break;
      case Statement::Kind::kDirective: Declare(statement); break;
      case Statement::Kind::kLabel:
        last_label_ = module_.Text(statement.first);
        labels_[last_label_].push_back({static_cast<std::uint32_t>(into.ops.size()), scope_});
        break;
      case Statement::Kind::kInstruction:
        if (Status status = Add(statement); !status.ok()) return status;
        break;
    }
  }
  return Resolve();
}

}  // namespace

Result<DecodedProgram> Decode(std::string ptx) {
  Result<Module> module = Module::Parse(std::move(ptx));
  if (!module.ok()) return module.status();
  DecodedProgram program;
  Meanings globals;
  // Modifiers are views into the text.
  program.module = std::make_unique<const Module>(*std::move(module));
  const Module& parsed = *program.module;
  VariableReader variables(parsed, globals, program);
  if (Status status = variables.Read(); !status.ok()) return status;
  for (std::uint32_t i = 0; i < parsed.functions().size(); ++i) {
    const text::Function& source = parsed.functions()[i];
    CodeFunction function;
    function.name = source.name;
    function.is_entry = source.is_entry;
    function.has_body = source.has_body;
    // A declaration stands for the body of its name.
    const std::uint32_t index = parsed.FindFunction(source.name).value_or(i);
    globals[function.name] = {Meaning::Kind::kFunction, index, 0};
    program.function_by_name[function.name] = index;
    program.functions.push_back(std::move(function));
  }
  if (Status status = variables.Initialize(); !status.ok()) return status;
  for (std::uint32_t i = 0; i < parsed.functions().size(); ++i) {
    FunctionDecoder decoder(parsed, parsed.functions()[i], globals, program);
    if (Status status = decoder.Decode(program.functions[i]); !status.ok()) return status;
  }
  return program;
}

}  // namespace gpusched::test::ptx
