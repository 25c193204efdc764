// Splits instructions into operands; registers declared in inner braces are names of their own.
#include "device/cuda/ptx/operands.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gpusched::device::ptx {
namespace {

bool Has(std::string_view opcode, std::string_view part) {
  return opcode.find(part) != std::string_view::npos;
}

enum class Access : std::uint8_t { kNone, kLoad, kStore, kBoth };

Access AccessOf(std::string_view opcode) {
  switch (opcode[0]) {
    case 'l':
      if (opcode.starts_with("ld")) return Access::kLoad;  // ld, ldu, ldmatrix
      break;
    case 's':
      if (opcode.starts_with("st.") || opcode.starts_with("stmatrix")) return Access::kStore;
      break;
    case 'w':
      if (opcode.starts_with("wmma.load")) return Access::kLoad;
      if (opcode.starts_with("wmma.store")) return Access::kStore;
      break;
    case 'r':
      if (opcode.starts_with("red.") || opcode.starts_with("red::")) return Access::kBoth;
      break;
    case 'a':
      if (opcode.starts_with("atom.")) return Access::kBoth;
      break;
    case 'c':
      if (opcode.starts_with("cp.") || opcode.starts_with("call")) return Access::kBoth;
      break;
    case 'm':
      if (opcode.starts_with("multimem.")) return Access::kBoth;
      break;
  }
  return Access::kNone;
}

struct Spaces {
  bool shared = false, local = false, global = false;
};
Spaces SpacesOf(std::string_view opcode) {
  if (opcode.starts_with("cp.") || opcode.starts_with("call")) return {true, true, true};
  if (opcode.starts_with("ldmatrix") || opcode.starts_with("stmatrix")) return {true, false, false};
  if (Has(opcode, ".param") || Has(opcode, ".const")) return {};
  if (Has(opcode, ".shared")) return {true, false, false};
  if (Has(opcode, ".local")) return {false, true, false};
  if (Has(opcode, ".global")) return {false, false, true};
  return {true, true, true};
}

// Most opcodes write their first operand; these read it.
bool WritesNothing(std::string_view opcode) {
  switch (opcode[0]) {
    case 'b':
      return opcode.starts_with("bra") || opcode.starts_with("brx") ||
             (opcode.starts_with("bar") && !Has(opcode, ".red"));
    case 'n': return opcode.starts_with("nanosleep");
    case 'p': return opcode.starts_with("pmevent");
    case 's': return opcode.starts_with("setmaxnreg") || opcode.starts_with("stackrestore");
  }
  return false;
}

bool IsZero(std::string_view number) {
  const auto value = ParseInteger(number);
  return value && *value == 0;
}

}  // namespace

bool IsSharedWithOthers(std::string_view opcode) {
  if (opcode.starts_with("multimem.ld_reduce")) return true;
  const bool is_load = opcode.starts_with("ld.") || opcode.starts_with("ld::");
  if (!is_load && !opcode.starts_with("atom.")) return false;
  const Spaces spaces = SpacesOf(opcode);
  if (!spaces.global) return false;
  return !is_load || Has(opcode, ".volatile") || Has(opcode, ".acquire") ||
         Has(opcode, ".relaxed") || Has(opcode, ".mmio") || Has(opcode, ".cv");
}

namespace {

// Names to numbers: open addressing, since looking names up is most of what reading costs.
class NameTable {
 public:
  NameTable() : slots_(kFewest) {}

  // The name's number; kNoName is put there for a new one.
  NameIndex& operator[](std::string_view name) {
    if (used_ * 2 > slots_.size()) Grow();
    Slot& slot = Find(name);
    if (slot.name.empty()) {
      slot.name = name;
      ++used_;
    }
    return slot.index;
  }

 private:
  static constexpr std::size_t kFewest = 256;
  struct Slot {
    std::string_view name;
    NameIndex index = kNoName;
  };
  static std::size_t Hash(std::string_view name) {
    std::uint64_t hash = name.size();
    for (std::size_t at = 0; at < name.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t part = 0;
      std::memcpy(&part, name.data() + at, std::min(sizeof(part), name.size() - at));
      hash = (hash ^ part) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 32;
    }
    return hash;
  }
  Slot& Find(std::string_view name) {
    std::size_t at = Hash(name) & (slots_.size() - 1);
    while (!slots_[at].name.empty() && slots_[at].name != name) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }
  void Grow() {
    std::vector<Slot> old(slots_.size() * 4);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (!slot.name.empty()) Find(slot.name) = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

class Reader {
 public:
  Reader(const Module& module, const std::vector<bool>& callees_touch_others,
         std::vector<NameIndex>& names)
      : module_(module), callees_(callees_touch_others), names_(names) {}

  void Open() { scopes_.emplace_back(); }
  void Close() {
    if (scopes_.empty()) return;
    for (const auto& [name, before] : scopes_.back()) index_[name] = before;
    scopes_.pop_back();
  }
  // ".reg .b32 temp, other;" and ".param .b64 param0;" in inner braces.
  void Declare(const Statement& statement) {
    // The function's own braces are the outermost scope.
    if (scopes_.size() < 2) return;
    for (TokenIndex at = statement.first; at < statement.end; ++at) {
      if (module_.tokens()[at].kind != TokenKind::kWord || module_.tokens()[at].first == '.')
        continue;
      if (at + 1 < statement.end && module_.IsMark(at + 1, '<')) continue;
      const std::string_view name = module_.Text(at);
      NameIndex& index = index_[name];
      scopes_.back().emplace_back(name, index);
      index = count_++;
    }
  }
  Instruction Read(std::uint32_t index, const Statement& statement);
  NameIndex count() const { return count_; }
  // Of names that a "mov" sets to zero.
  const std::vector<NameIndex>& zeros() const { return zeros_; }

 private:
  NameIndex Name(TokenIndex at) {
    NameIndex& index = index_[module_.Text(at)];
    if (index == kNoName) index = count_++;
    return index;
  }
  bool IsName(TokenIndex at) const {
    const Token& token = module_.tokens()[at];
    return token.kind == TokenKind::kWord && token.first != '.';
  }
  TokenIndex EndOfOperand(TokenIndex at, TokenIndex end) const;
  void AddMemory(std::string_view opcode, bool store);
  bool CalleeTouchesOthers(const Statement& statement) const;
  void FindSource(const Statement& statement, std::string_view opcode, Instruction& instruction);

  const Module& module_;
  const std::vector<bool>& callees_;
  std::vector<NameIndex>& names_;
  NameTable index_;
  std::vector<std::vector<std::pair<std::string_view, NameIndex>>> scopes_;
  std::vector<NameIndex> zeros_;
  NameIndex count_ = kFirstRegister;
};

TokenIndex Reader::EndOfOperand(TokenIndex at, TokenIndex end) const {
  int depth = 0;
  for (; at < end; ++at) {
    if (module_.tokens()[at].kind != TokenKind::kMark) continue;
    const char c = module_.tokens()[at].first;
    if (depth == 0 && c == ',') return at;
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
  }
  return end;
}

void Reader::AddMemory(std::string_view opcode, bool store) {
  const Access access = AccessOf(opcode);
  if (access == Access::kNone || (store && access == Access::kLoad) ||
      (!store && access == Access::kStore)) {
    return;
  }
  const Spaces spaces = SpacesOf(opcode);
  if (spaces.shared) names_.push_back(kSharedMemory);
  if (spaces.local) names_.push_back(kLocalMemory);
  if (spaces.global) names_.push_back(kGlobalMemory);
}

bool Reader::CalleeTouchesOthers(const Statement& statement) const {
  TokenIndex at = statement.opcode + 1;
  if (at < statement.end && module_.IsMark(at, '(')) at = EndOfOperand(at, statement.end) + 1;
  if (at >= statement.end) return true;
  const auto callee = module_.FindFunction(module_.Text(at));
  if (callee) return callees_[*callee];
  for (bool touches : callees_) {
    if (touches) return true;
  }
  return false;
}

void Reader::FindSource(const Statement& statement, std::string_view opcode,
                        Instruction& instruction) {
  if (opcode.starts_with("call")) {
    if (CalleeTouchesOthers(statement)) instruction.source = Source::kFlag;
    return;
  }
  if (!IsSharedWithOthers(opcode)) return;
  instruction.source = Source::kFlag;
  if (!opcode.starts_with("atom.")) return;
  const TokenIndex address = EndOfOperand(statement.opcode + 1, statement.end) + 1;
  const TokenIndex operand = EndOfOperand(address, statement.end) + 1;
  if (operand >= statement.end) return;
  if (Has(opcode, ".cas")) {
    instruction.source = Source::kExchange;
    if (IsName(operand)) instruction.compared = Name(operand);
  } else if (Has(opcode, ".add") || Has(opcode, ".inc") || Has(opcode, ".dec") ||
             Has(opcode, ".sub")) {
    // Adding zero is how a flag is read.
    bool zero = IsZero(module_.Text(operand));
    if (IsName(operand)) {
      const NameIndex name = Name(operand);
      for (NameIndex known : zeros_) zero = zero || known == name;
    }
    if (!zero) instruction.source = Source::kCounter;
  }
}

Instruction Reader::Read(std::uint32_t index, const Statement& statement) {
  const std::string_view opcode = module_.Text(statement.opcode);
  Instruction instruction{.statement = index};
  instruction.is_trap = opcode == "trap";
  const TokenIndex operands = statement.opcode + 1;
  TokenIndex written_end = operands;
  const bool marks_address = operands < statement.end && module_.IsMark(operands, '[');
  const bool is_call = opcode.starts_with("call");
  const bool writes_first =
      is_call ? operands < statement.end && module_.IsMark(operands, '(')
              : opcode.starts_with("st.param") || (!marks_address && !WritesNothing(opcode));
  if (writes_first) written_end = EndOfOperand(operands, statement.end);

  instruction.writes = static_cast<std::uint32_t>(names_.size());
  for (TokenIndex at = operands; at < written_end; ++at) {
    if (IsName(at)) names_.push_back(Name(at));
  }
  AddMemory(opcode, true);
  instruction.reads = static_cast<std::uint32_t>(names_.size());
  if (statement.guarded()) names_.push_back(Name(statement.opcode - 1));
  for (TokenIndex at = written_end; at < statement.end; ++at) {
    if (IsName(at)) names_.push_back(Name(at));
  }
  AddMemory(opcode, false);
  instruction.end = static_cast<std::uint32_t>(names_.size());

  if (opcode.starts_with("mov.") && statement.end - operands == 3 &&
      IsZero(module_.Text(statement.end - 1)) && IsName(operands)) {
    zeros_.push_back(Name(operands));
  }
  instruction.loads_global = AccessOf(opcode) == Access::kLoad && SpacesOf(opcode).global;
  FindSource(statement, opcode, instruction);
  return instruction;
}

}  // namespace

Operands::Operands(const Module& module, const Function& function, const Flow& flow,
                   const std::vector<bool>& callees_touch_others) {
  Reader reader(module, callees_touch_others, names_);
  const auto note_block = [&](std::uint32_t statement) {
    while (first_of_block_.size() < flow.blocks().size() &&
           flow.blocks()[first_of_block_.size()].first <= statement) {
      first_of_block_.push_back(static_cast<std::uint32_t>(instructions_.size()));
    }
  };
  for (std::uint32_t i = function.first_statement; i < function.end_statement; ++i) {
    note_block(i);
    const Statement& statement = module.statements()[i];
    switch (statement.kind) {
      case Statement::Kind::kOpen: reader.Open(); break;
      case Statement::Kind::kClose: reader.Close(); break;
      case Statement::Kind::kDirective: reader.Declare(statement); break;
      case Statement::Kind::kLabel: break;
      case Statement::Kind::kInstruction: instructions_.push_back(reader.Read(i, statement)); break;
    }
  }
  note_block(UINT32_MAX);
  first_of_block_.push_back(static_cast<std::uint32_t>(instructions_.size()));
  name_count_ = reader.count();
}

}  // namespace gpusched::device::ptx
