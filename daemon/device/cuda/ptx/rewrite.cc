// Collects small edits to the text, applies them in one pass, and reads the result again.
#include "device/cuda/ptx/rewrite.h"

#include <algorithm>
#include <array>
#include <utility>

#include "device/cuda/ptx/body_facts.h"
#include "gpusched/reasons.h"

namespace gpusched::device::ptx {
namespace {

constexpr std::string_view kBox = "__gpusched_box";    // the parameter
constexpr std::string_view kSlot = "__gpusched_slot";  // the same values in shared memory
constexpr std::uint32_t kBoxBytes = sizeof(BoxParameter), kBoxAlignment = 16;
constexpr std::uint32_t kMostStaticShared = 48 * 1024;
// A kernel's parameters: 4,096 bytes, from PTX 8.1 on 32,764.
constexpr std::uint32_t kMostParameters = 4'096, kMostParametersSince81 = 32'764;

struct BlockId {
  std::string_view physical;  // as the text says it
  std::string_view logical;   // the register that takes its place
  std::uint32_t at;           // byte in the box
};
constexpr std::array<BlockId, 6> kBlockIds{{{"%ctaid.x", "%gpusched_ctaid_x", 0},
                                            {"%ctaid.y", "%gpusched_ctaid_y", 4},
                                            {"%ctaid.z", "%gpusched_ctaid_z", 8},
                                            {"%nctaid.x", "%gpusched_nctaid_x", 12},
                                            {"%nctaid.y", "%gpusched_nctaid_y", 16},
                                            {"%nctaid.z", "%gpusched_nctaid_z", 20}}};
constexpr std::size_t kOffsets = 3;  // the first three are offsets, added to what is physical

using Used = std::array<bool, kBlockIds.size()>;
constexpr Used kAll{true, true, true, true, true, true};

struct Edit {
  std::uint32_t begin = 0, size = 0;
  std::string text;
};

std::string Apply(std::string_view text, std::vector<Edit> edits) {
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  std::string result;
  std::size_t size = text.size();
  for (const Edit& edit : edits) size += edit.text.size();
  result.reserve(size);
  std::size_t at = 0;
  for (const Edit& edit : edits) {
    result.append(text.substr(at, edit.begin - at));
    result.append(edit.text);
    at = edit.begin + edit.size;
  }
  result.append(text.substr(at));
  return result;
}

std::uint32_t BoxOffset(const Function& entry) {
  return (entry.parameter_bytes() + kBoxAlignment - 1) / kBoxAlignment * kBoxAlignment;
}

class Rewriter {
 public:
  Rewriter(const Module& module, const Classification& classification)
      : module_(module),
        classification_(classification),
        reasons_(module.functions().size()),
        physical_(module.functions().size(), false) {}

  Result<Rewritten> Run();

 private:
  const Function& function(std::uint32_t i) const { return module_.functions()[i]; }
  bool IsKernel(std::uint32_t i) const { return function(i).is_entry && function(i).has_body; }
  bool IsBoxed(std::uint32_t i) const { return IsKernel(i) && reasons_[i].empty(); }
  bool IsRewritten(std::uint32_t i) const {
    return function(i).is_entry ? IsBoxed(i) : classification_.reads_block_ids(i) && !physical_[i];
  }
  void ChooseBoxed();
  std::string WhyNotBoxed(std::uint32_t entry) const;
  void LeavePhysical(std::uint32_t entry);
  std::string MeetsPhysical(std::uint32_t entry) const;

  void RewriteFunction(std::uint32_t i);
  Used ReplaceBlockIds(const Function& function);
  void AddParameter(const Function& entry);
  std::uint32_t After(TokenIndex at) const {
    return module_.tokens()[at].begin + module_.tokens()[at].size;
  }

  RewrittenKernel Describe(std::uint32_t entry) const;
  Status Check(const Module& result) const;

  const Module& module_;
  const Classification& classification_;
  std::vector<std::string> reasons_;  // of entries: why not boxed; "" if they are
  std::vector<bool> physical_;        // reached by an entry that is not boxed: left as they are
  std::vector<Edit> edits_;
  std::vector<Used> used_;  // by function
};

std::string Rewriter::WhyNotBoxed(std::uint32_t i) const {
  const Function& entry = function(i);
  const Reach& reach = classification_.reach(i);
  if (module_.FindFunction(entry.name) != i) return "it is declared more than once";
  if (entry.opaque_parameters) return "it has a parameter whose layout is not known";
  const std::uint32_t most = module_.version() >= 81 ? kMostParametersSince81 : kMostParameters;
  if (BoxOffset(entry) + kBoxBytes > most) return "its parameters leave no room for one more";
  for (std::uint32_t reached : reach.functions) {
    if (classification_.must_stay(reached)) return "it uses what cannot be rewritten";
  }
  if (reach.callee_reads_block_ids && reach.static_shared_bytes + kBoxBytes > kMostStaticShared) {
    return "its static shared memory (" + std::to_string(reach.static_shared_bytes) +
           " bytes) leaves no room for the 32 bytes its device functions need";
  }
  return "";
}

void Rewriter::LeavePhysical(std::uint32_t entry) {
  for (std::uint32_t reached : classification_.reach(entry).functions) physical_[reached] = true;
}

// The name of a device function that reads block ids and has to stay as it is; "" if none.
std::string Rewriter::MeetsPhysical(std::uint32_t entry) const {
  for (std::uint32_t reached : classification_.reach(entry).functions) {
    if (reached != entry && physical_[reached] && classification_.reads_block_ids(reached)) {
      return std::string(function(reached).name);
    }
  }
  return "";
}

// An entry that stays as it is keeps its device functions as they are, and these keep the other
// entries that call them.
void Rewriter::ChooseBoxed() {
  const auto count = static_cast<std::uint32_t>(module_.functions().size());
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!IsKernel(i)) continue;
    reasons_[i] = WhyNotBoxed(i);
    if (!reasons_[i].empty()) LeavePhysical(i);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!IsBoxed(i) || !classification_.reach(i).callee_reads_block_ids) continue;
      const std::string shared = MeetsPhysical(i);
      if (shared.empty()) continue;
      reasons_[i] = "it shares '" + shared + "' with a kernel that cannot be rewritten";
      LeavePhysical(i);
      changed = true;
    }
  }
}

void Rewriter::AddParameter(const Function& entry) {
  const std::string parameter = ".param .align " + std::to_string(kBoxAlignment) + " .b8 " +
                                std::string(kBox) + "[" + std::to_string(kBoxBytes) + "]";
  if (entry.open_parameters == 0) {
    edits_.push_back({After(entry.name_at), 0, "(\n\t" + parameter + "\n)"});
  } else {
    edits_.push_back({module_.tokens()[entry.close_parameters].begin, 0,
                      (entry.parameters.empty() ? "\n\t" : ",\n\t") + parameter + "\n"});
  }
}

Used Rewriter::ReplaceBlockIds(const Function& function) {
  Used used{};
  for (std::uint32_t i = function.first_statement; i < function.end_statement; ++i) {
    const Statement& statement = module_.statements()[i];
    if (statement.kind != Statement::Kind::kInstruction) continue;
    // The forms are few (body_facts.cc): the block id is the last operand.
    const Token& last = module_.tokens()[statement.end - 1];
    if (last.first != '%' || last.size < kBlockIds[0].physical.size()) continue;
    const std::string_view word = module_.Text(last);
    for (std::size_t id = 0; id < kBlockIds.size(); ++id) {
      if (word != kBlockIds[id].physical) continue;
      used[id] = true;
      edits_.push_back({last.begin, last.size, std::string(kBlockIds[id].logical)});
      const Token& opcode = module_.tokens()[statement.opcode];
      if (module_.Text(opcode).starts_with("mov.") && module_.Text(opcode).ends_with("16")) {
        edits_.push_back({opcode.begin, opcode.size, "cvt.u16.u32"});
      }
    }
  }
  return used;
}

std::string Registers(const Used& used, bool physical) {
  std::string text;
  for (std::size_t id = 0; id < kBlockIds.size(); ++id) {
    if (used[id]) text += (text.empty() ? "" : ", ") + std::string(kBlockIds[id].logical);
  }
  if (text.empty()) return text;
  return "\n\t.reg .b32 " + text + (physical ? ", %gpusched_physical" : "") + ";";
}

std::string Loads(const Used& used, std::string_view opcode, std::string_view from,
                  bool add_physical) {
  std::string text;
  for (std::size_t id = 0; id < kBlockIds.size(); ++id) {
    if (!used[id]) continue;
    const std::string logical(kBlockIds[id].logical);
    text += "\n\t" + std::string(opcode) + " " + logical + ", [" + std::string(from) + "+" +
            std::to_string(kBlockIds[id].at) + "];";
    if (!add_physical || id >= kOffsets) continue;
    text += "\n\tmov.u32 %gpusched_physical, " + std::string(kBlockIds[id].physical) + ";" +
            "\n\tadd.u32 " + logical + ", " + logical + ", %gpusched_physical;";
  }
  return text;
}

// Every thread writes the same values: no barrier is needed for a thread to read its own.
std::string FillSlot() {
  std::string text;
  for (const BlockId& id : kBlockIds) {
    text += "\n\tst.shared.u32 [" + std::string(kSlot) + "+" + std::to_string(id.at) + "], " +
            std::string(id.logical) + ";";
  }
  return text;
}

void Rewriter::RewriteFunction(std::uint32_t i) {
  const Function& rewritten = function(i);
  Used& used = used_[i];
  if (!rewritten.is_entry) {
    used = ReplaceBlockIds(rewritten);
    edits_.push_back({After(rewritten.body), 0,
                      Registers(used, false) + Loads(used, "ld.shared.u32", kSlot, false)});
    return;
  }
  AddParameter(rewritten);
  const bool fills_slot = classification_.reach(i).callee_reads_block_ids;
  if (classification_.reads_block_ids(i)) used = ReplaceBlockIds(rewritten);
  if (fills_slot) used = kAll;
  edits_.push_back({After(rewritten.body), 0,
                    Registers(used, true) + Loads(used, "ld.param.u32", kBox, true) +
                        (fills_slot ? FillSlot() : "")});
}

RewrittenKernel Rewriter::Describe(std::uint32_t i) const {
  const Function& entry = function(i);
  RewrittenKernel kernel;
  kernel.name = entry.name;
  kernel.verdict = classification_.verdict(i);
  kernel.boxed = IsBoxed(i);
  if (!kernel.boxed && kernel.verdict.cut != Cut::kWhole) {
    kernel.verdict = {Cut::kWhole, reasons_[i]};
  }
  kernel.parameter_bytes = entry.parameter_bytes();
  for (const EntryParameter& parameter : entry.parameters) {
    kernel.offsets.push_back(parameter.offset);
    kernel.sizes.push_back(parameter.size);
  }
  if (kernel.boxed) {
    kernel.box_offset = BoxOffset(entry);
    if (classification_.reach(i).callee_reads_block_ids) kernel.added_shared_bytes = kBoxBytes;
  }
  return kernel;
}

Status Rewriter::Check(const Module& result) const {
  const auto broken = [](std::string_view name, std::string_view what) {
    return Status(StatusCode::kInternal, reason::kBadModule,
                  "rewriting '" + std::string(name) +
                      "' failed its own check: " + std::string(what) + "; the module runs whole");
  };
  if (result.functions().size() != module_.functions().size()) {
    return broken("the module", "it has other functions");
  }
  for (std::uint32_t i = 0; i < result.functions().size(); ++i) {
    const Function& after = result.functions()[i];
    if (after.name != function(i).name) return broken(after.name, "it has another name");
    if (!IsRewritten(i)) continue;
    std::size_t allowed = 0;
    if (after.is_entry) {
      for (std::size_t id = 0; id < kOffsets; ++id) allowed += used_[i][id] ? 1 : 0;
      if (after.parameters.size() != function(i).parameters.size() + 1 ||
          after.parameters.back().name != kBox ||
          after.parameters.back().offset != BoxOffset(function(i)) ||
          after.parameters.back().size != kBoxBytes) {
        return broken(after.name, "its parameters are not its own and the box");
      }
    }
    std::size_t physical = 0;
    for (TokenIndex at = after.body; at < after.end; ++at) {
      const Token& token = result.tokens()[at];
      if (token.first == '%' && token.size > 5 && IsBlockId(result.Text(token))) ++physical;
    }
    if (physical != allowed) return broken(after.name, "it reads a physical block id");
  }
  return Status::Ok();
}

Result<Rewritten> Rewriter::Run() {
  if (module_.text().find("gpusched_") != std::string_view::npos) {
    return Status(StatusCode::kInvalidArgument, reason::kBadModule,
                  "names that hold 'gpusched_' are kept for rewriting; the module runs whole");
  }
  ChooseBoxed();
  used_.resize(module_.functions().size());
  Rewritten rewritten{.text = {}, .kernels = {}, .mutable_globals = module_.has_mutable_globals()};
  bool slot = false;
  for (std::uint32_t i = 0; i < module_.functions().size(); ++i) {
    if (IsKernel(i)) rewritten.kernels.push_back(Describe(i));
    if (!IsRewritten(i)) continue;
    RewriteFunction(i);
    slot = slot || !function(i).is_entry || rewritten.kernels.back().added_shared_bytes > 0;
  }
  if (slot) {
    edits_.push_back({module_.header_end(), 0,
                      "\n.shared .align " + std::to_string(kBoxAlignment) + " .b8 " +
                          std::string(kSlot) + "[" + std::to_string(kBoxBytes) + "];"});
  }
  rewritten.text = Apply(module_.text(), std::move(edits_));
  Result<Module> result = Module::ParseOutline(rewritten.text);
  if (!result.ok()) return result.status();
  if (Status status = Check(*result); !status.ok()) return status;
  return rewritten;
}

}  // namespace

Result<Rewritten> Rewrite(const Module& module) {
  const Classification classification(module);
  return Rewriter(module, classification).Run();
}

Result<Rewritten> Rewrite(std::string text) {
  const Result<Module> module = Module::Parse(std::move(text));
  if (!module.ok()) return module.status();
  return Rewrite(*module);
}

}  // namespace gpusched::device::ptx
