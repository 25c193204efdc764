// One pass over a body's statements; only words of interest are looked up.
#include "device/cuda/ptx/body_facts.h"

#include <algorithm>
#include <utility>

#include "device/cuda/ptx/operands.h"

namespace gpusched::device::ptx {
namespace {

// More than any block has; keeps products of what a text claims from overflowing.
constexpr std::uint64_t kMuchShared = 1 << 30;

bool IsCluster(std::string_view word) {
  return word.starts_with("%cluster") || word.starts_with("%ncluster") ||
         word.starts_with("%is_explicit_cluster");
}

bool IsClusterOpcode(std::string_view opcode) {
  switch (opcode[0]) {
    case 'm': return opcode.starts_with("mapa");
    case 'g': return opcode.starts_with("getctarank");
    case 'b': return opcode.starts_with("barrier.cluster");
    case 'c':
      return opcode.starts_with("clusterlaunchcontrol") ||
             opcode.find("multicast::cluster") != std::string_view::npos;
    case 's': return opcode.starts_with("st.async");
    case 'r': return opcode.starts_with("red.async");
    case 't': return opcode.find("cta_group::2") != std::string_view::npos;
  }
  return false;
}

// What every CUDA program may call though no module has its body.
bool IsSystemCall(std::string_view name) {
  return name == "vprintf" || name == "malloc" || name == "free" || name == "__assertfail";
}
bool IsDynamicParallelism(std::string_view name) {
  return name.starts_with("__cudaCDP") || name.starts_with("cudaLaunchDevice") ||
         name.starts_with("cudaGetParameterBuffer") || name.starts_with("cudaDevice");
}

class Look {
 public:
  Look(const Module& module, const Function& function) : module_(module), function_(function) {}

  BodyFacts Take() {
    ReadDirectives();
    for (std::uint32_t i = function_.first_statement; i < function_.end_statement; ++i) {
      const Statement& statement = module_.statements()[i];
      if (statement.kind == Statement::Kind::kInstruction) ReadInstruction(statement);
      if (statement.kind == Statement::Kind::kDirective) ReadDeclaration(statement);
    }
    Once(facts_.functions);
    Once(facts_.variables);
    return std::move(facts_);
  }

 private:
  static void Once(std::vector<std::uint32_t>& indices) {
    std::sort(indices.begin(), indices.end());
    indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  }
  void Whole(std::string reason) {
    if (facts_.whole.empty()) facts_.whole = std::move(reason);
  }
  void Clusters(std::string_view what) {
    facts_.clusters = true;
    Whole("it runs in clusters of blocks (" + std::string(what) + ")");
  }
  void ReadDirectives() {
    for (std::string_view directive : function_.directives) {
      if (directive == ".reqnctapercluster" || directive == ".explicitcluster" ||
          directive == ".maxclusterrank" || directive == ".blocksareclusters") {
        Clusters(directive);
      }
    }
  }
  void ReadDeclaration(const Statement& statement);
  void Lookup(TokenIndex at) {
    const std::string_view word = module_.Text(at);
    if (const auto variable = module_.FindVariable(word)) {
      facts_.variables.push_back(*variable);
    } else if (const auto function = module_.FindFunction(word)) {
      facts_.functions.push_back(*function);
    }
  }
  void ReadInstruction(const Statement& statement);
  void ReadCall(const Statement& statement);
  void ReadSpecialRegister(const Statement& statement, TokenIndex at);
  bool IsKnownForm(const Statement& statement, TokenIndex at) const;

  const Module& module_;
  const Function& function_;
  BodyFacts facts_;
};

// ".shared .align 4 .b8 tile[256]", and a list of call targets, which names functions.
void Look::ReadDeclaration(const Statement& statement) {
  const std::string_view word = module_.Text(statement.first);
  if (word == ".calltargets") {
    for (TokenIndex at = statement.first + 1; at < statement.end; ++at) Lookup(at);
  }
  if (!word.starts_with(".shared")) return;
  std::uint64_t alignment = 1, bytes = 1;
  for (TokenIndex at = statement.first + 1; at < statement.end; ++at) {
    const std::string_view part = module_.Text(at);
    if (part == ".align" && at + 1 < statement.end) {
      alignment =
          std::clamp<std::uint64_t>(ParseInteger(module_.Text(at + 1)).value_or(1), 1, 1024);
    } else if (const std::uint32_t type = TypeBytes(part); type != 0) {
      bytes = type;
    } else if (module_.IsMark(at, '[') && at + 1 < statement.end) {
      const std::uint64_t extent = ParseInteger(module_.Text(at + 1)).value_or(0);
      bytes = std::min(bytes, kMuchShared) * std::min(extent, kMuchShared);
    }
  }
  facts_.static_shared_bytes +=
      (std::min(bytes, kMuchShared) + alignment - 1) / alignment * alignment;
}

void Look::ReadInstruction(const Statement& statement) {
  const std::string_view opcode = module_.Text(statement.opcode);
  if (IsClusterOpcode(opcode)) Clusters(opcode);
  if (opcode.starts_with("griddepcontrol")) {
    Whole("it is part of a chain of dependent launches (griddepcontrol)");
  }
  if (!facts_.touches_others && IsSharedWithOthers(opcode)) facts_.touches_others = true;
  if (opcode.starts_with("call")) ReadCall(statement);
  for (TokenIndex at = statement.opcode + 1; at < statement.end; ++at) {
    const Token& token = module_.tokens()[at];
    if (token.kind != TokenKind::kWord || token.first == '.') continue;
    const std::string_view word = module_.Text(token);
    if (token.first == '%') {
      // Ordinary registers are %r1, %rd2, %f3, %p4 and the like.
      if (word.size() > 5) ReadSpecialRegister(statement, at);
    } else if (token.first != '$' || !word.starts_with("$L_")) {
      Lookup(at);
    }
  }
}

void Look::ReadCall(const Statement& statement) {
  TokenIndex at = statement.opcode + 1;
  if (module_.IsMark(at, '(')) {
    while (at < statement.end && !module_.IsMark(at, ')')) ++at;
    at += 2;  // "),"
  }
  if (at >= statement.end)
    return Whole("a call that cannot be read at " + module_.Place(statement.first));
  const std::string_view callee = module_.Text(at);
  const auto function = module_.FindFunction(callee);
  if (!function) {
    facts_.calls_unknown = true;
    return;
  }
  if (module_.functions()[*function].has_body || IsSystemCall(callee)) return;
  if (IsDynamicParallelism(callee)) {
    return Whole("it launches kernels itself (dynamic parallelism: " + std::string(callee) + ")");
  }
  Whole("it calls '" + std::string(callee) + "', whose body is not in the module");
}

void Look::ReadSpecialRegister(const Statement& statement, TokenIndex at) {
  const std::string_view word = module_.Text(at);
  if (IsBlockId(word)) {
    facts_.reads_block_ids = true;
    if (facts_.unknown_form.empty() && !IsKnownForm(statement, at)) {
      facts_.unknown_form =
          "a block id is used in a form that cannot be rewritten at " + module_.Place(at) + " ('" +
          std::string(module_.Text(statement.opcode)) + "' with '" + std::string(word) + "')";
    }
  } else if (IsCluster(word)) {
    Clusters(word);
  } else if (word.starts_with("%envreg")) {
    Whole("its blocks wait for each other: a cooperative launch or grid sync (" +
          std::string(word) + ")");
  } else if (word == "%total_smem_size" || word == "%aggr_smem_size") {
    Whole("it asks how much shared memory it was given (" + std::string(word) + ")");
  }
}

// "mov.u32 %r1, %ctaid.x" and "cvt.u64.u32 %rd1, %ctaid.x".
bool Look::IsKnownForm(const Statement& statement, TokenIndex at) const {
  const std::string_view word = module_.Text(at);
  const char component = word.back();
  if (word[word.size() - 2] != '.' || component < 'x' || component > 'z') return false;
  const TokenIndex written = statement.opcode + 1;
  if (at != written + 2 || statement.end != at + 1 || !module_.IsMark(written + 1, ',') ||
      module_.tokens()[written].kind != TokenKind::kWord || IsBlockId(module_.Text(written))) {
    return false;
  }
  const std::string_view opcode = module_.Text(statement.opcode);
  if (opcode.starts_with("mov.")) {
    const std::string_view type = opcode.substr(3);
    return type == ".u32" || type == ".s32" || type == ".b32" || type == ".u16" || type == ".s16" ||
           type == ".b16";
  }
  return opcode.starts_with("cvt.") && (opcode.ends_with(".u32") || opcode.ends_with(".s32")) &&
         opcode.size() > 8;
}

}  // namespace

bool IsBlockId(std::string_view word) {
  if (!word.starts_with("%ctaid") && !word.starts_with("%nctaid")) return false;
  const std::string_view rest = word.substr(word[1] == 'n' ? 7 : 6);
  return rest.empty() || rest[0] == '.';
}

BodyFacts LookOver(const Module& module, const Function& function) {
  return Look(module, function).Take();
}

}  // namespace gpusched::device::ptx
