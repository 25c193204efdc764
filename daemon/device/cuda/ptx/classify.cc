// Looks over each function once, then judges each entry by all that it reaches.
#include "device/cuda/ptx/classify.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "device/cuda/ptx/body_facts.h"
#include "device/cuda/ptx/dependence.h"

namespace gpusched::device::ptx {
namespace {

// Kernels that wait for lower blocks only (decoupled look-back, Merrill and Garland 2016), in
// CUB's own namespace: safe while parts are started in order.
constexpr std::string_view kLookBack[] = {
    "16DeviceScanKernel",
    "21DeviceScanByKeyKernel",
    "23DeviceReduceByKeyKernel",
    "23DeviceSelectSweepKernel",
    "20DeviceRleSweepKernel",
    "28DeviceUniqueByKeySweepKernel",
    "29DeviceRadixSortOnesweepKernel",
    "29DeviceThreeWayPartitionKernel",
};

bool IsLookBack(std::string_view name) {
  if (name.find("3cub") == std::string_view::npos) return false;
  return std::any_of(std::begin(kLookBack), std::end(kLookBack), [&](std::string_view known) {
    return name.find(known) != std::string_view::npos;
  });
}

std::uint64_t RoundUp(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Of steps from name to name over all entries: far above the largest modules of known libraries.
constexpr std::size_t kMostSteps = 20'000'000;

class Judge {
 public:
  Judge(const Module& module, std::vector<BodyFacts> facts)
      : module_(module),
        facts_(std::move(facts)),
        waits_(facts_.size()),
        wait_known_(facts_.size(), false) {
    FindAddressTaken();
    FindVariablesOfFunctions();
    SpreadTouch();
  }

  Reach ReachOf(std::uint32_t entry);
  // More has been followed than any real module holds.
  bool tired() const { return steps_ > kMostSteps; }
  Verdict VerdictOf(std::uint32_t entry, const Reach& reach);

 private:
  void FindAddressTaken();
  void FindVariablesOfFunctions();
  void SpreadTouch();
  const WaitFound& WaitOf(std::uint32_t function);
  bool CallsItself(std::uint32_t function);
  std::string Inside(std::uint32_t function, std::uint32_t entry) const {
    return function == entry ? ""
                             : "in '" + std::string(module_.functions()[function].name) + "': ";
  }

  const Module& module_;
  const std::vector<BodyFacts> facts_;
  std::vector<std::uint32_t> address_taken_;  // device functions an unknown call may reach
  // Variables that a variable's initializer names, and functions likewise.
  std::vector<std::vector<std::uint32_t>> functions_of_variable_, variables_of_variable_;
  std::vector<bool> touches_others_;
  std::vector<WaitFound> waits_;
  std::vector<bool> wait_known_;
  std::size_t steps_ = 0;
};

// Any device function with a body: which of them a pointer may hold is not told apart.
void Judge::FindAddressTaken() {
  for (std::uint32_t i = 0; i < module_.functions().size(); ++i) {
    const Function& function = module_.functions()[i];
    if (!function.is_entry && function.has_body) address_taken_.push_back(i);
  }
}

void Judge::FindVariablesOfFunctions() {
  const auto count = module_.variables().size();
  functions_of_variable_.resize(count);
  variables_of_variable_.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Variable& variable = module_.variables()[i];
    if (variable.initializer == 0) continue;
    for (TokenIndex at = variable.initializer; at < variable.end; ++at) {
      if (module_.tokens()[at].kind != TokenKind::kWord) continue;
      const std::string_view word = module_.Text(at);
      if (const auto other = module_.FindVariable(word)) {
        variables_of_variable_[i].push_back(*other);
      } else if (const auto function = module_.FindFunction(word)) {
        functions_of_variable_[i].push_back(*function);
      }
    }
  }
}

// From callees to callers until nothing changes.
void Judge::SpreadTouch() {
  const auto count = static_cast<std::uint32_t>(facts_.size());
  touches_others_.resize(count);
  std::vector<std::vector<std::uint32_t>> callers(count);
  std::vector<std::uint32_t> open;
  bool any = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t callee : facts_[i].functions) callers[callee].push_back(i);
    if (facts_[i].touches_others) open.push_back(i);
    any = any || (facts_[i].touches_others && !module_.functions()[i].is_entry);
  }
  for (std::uint32_t i = 0; i < count && any; ++i) {
    if (facts_[i].calls_unknown) open.push_back(i);
  }
  while (!open.empty()) {
    const std::uint32_t function = open.back();
    open.pop_back();
    if (touches_others_[function]) continue;
    touches_others_[function] = true;
    open.insert(open.end(), callers[function].begin(), callers[function].end());
  }
}

const WaitFound& Judge::WaitOf(std::uint32_t function) {
  if (!wait_known_[function]) {
    waits_[function] = FindWait(module_, module_.functions()[function], touches_others_);
    wait_known_[function] = true;
  }
  return waits_[function];
}

Reach Judge::ReachOf(std::uint32_t entry) {
  Reach reach;
  std::vector<bool> function_seen(facts_.size(), false);
  std::vector<bool> variable_seen(module_.variables().size(), false);
  const auto see_function = [&](std::uint32_t i) {
    if (!function_seen[i]) reach.functions.push_back(i);
    function_seen[i] = true;
  };
  const auto see_variable = [&](std::uint32_t i) {
    if (!variable_seen[i]) reach.variables.push_back(i);
    variable_seen[i] = true;
  };
  see_function(entry);
  if (tired()) return reach;
  steps_ += 1 + (facts_.size() + module_.variables().size()) / 64;
  std::size_t function_at = 0, variable_at = 0;
  while (function_at < reach.functions.size() || variable_at < reach.variables.size()) {
    if (function_at < reach.functions.size()) {
      const BodyFacts& facts = facts_[reach.functions[function_at++]];
      for (std::uint32_t i : facts.functions) see_function(i);
      for (std::uint32_t i : facts.variables) see_variable(i);
      if (facts.calls_unknown) {
        for (std::uint32_t i : address_taken_) see_function(i);
      }
    } else {
      const std::uint32_t variable = reach.variables[variable_at++];
      for (std::uint32_t i : functions_of_variable_[variable]) see_function(i);
      for (std::uint32_t i : variables_of_variable_[variable]) see_variable(i);
    }
  }
  steps_ += reach.functions.size() + reach.variables.size();
  for (std::uint32_t i : reach.functions) {
    reach.callee_reads_block_ids =
        reach.callee_reads_block_ids || (i != entry && facts_[i].reads_block_ids);
    reach.static_shared_bytes += facts_[i].static_shared_bytes;
  }
  for (std::uint32_t i : reach.variables) {
    const Variable& variable = module_.variables()[i];
    if (variable.space == Space::kShared && !variable.is_extern) {
      reach.static_shared_bytes += RoundUp(variable.bytes, variable.alignment);
    }
  }
  return reach;
}

bool Judge::CallsItself(std::uint32_t function) {
  const Reach reach = ReachOf(function);
  if (tired()) return true;
  return std::any_of(reach.functions.begin(), reach.functions.end(), [&](std::uint32_t i) {
    const auto& called = facts_[i].functions;
    return std::binary_search(called.begin(), called.end(), function);
  });
}

Verdict Judge::VerdictOf(std::uint32_t entry, const Reach& reach) {
  for (std::uint32_t i : reach.functions) {
    if (!facts_[i].whole.empty()) return {Cut::kWhole, Inside(i, entry) + facts_[i].whole};
    if (!facts_[i].unknown_form.empty()) {
      return {Cut::kWhole, Inside(i, entry) + facts_[i].unknown_form};
    }
  }
  Verdict verdict;
  for (std::uint32_t i : reach.functions) {
    // A function that asks again by calling itself is a loop without a branch.
    if (i != entry && facts_[i].touches_others && CallsItself(i)) {
      verdict = {Cut::kWhole, Inside(i, entry) + "it calls itself and reads what others write"};
      break;
    }
    const WaitFound& found = WaitOf(i);
    if (found.wait == Wait::kOthers) {
      verdict = {Cut::kWhole, Inside(i, entry) + found.reason};
      break;
    }
    if (found.wait == Wait::kQueue && verdict.cut == Cut::kFreely) {
      verdict = {Cut::kUnbounded, Inside(i, entry) + found.reason};
    }
  }
  if (verdict.cut == Cut::kWhole && IsLookBack(module_.functions()[entry].name)) {
    return {Cut::kInOrder, "its blocks wait for lower ones (decoupled look-back of CUB)"};
  }
  return verdict;
}

}  // namespace

Classification::Classification(const Module& module) {
  const auto count = static_cast<std::uint32_t>(module.functions().size());
  std::vector<BodyFacts> facts;
  facts.reserve(count);
  for (const Function& function : module.functions()) facts.push_back(LookOver(module, function));
  for (const BodyFacts& each : facts) {
    reads_block_ids_.push_back(each.reads_block_ids);
    unknown_forms_.push_back(each.unknown_form);
    clusters_.push_back(each.clusters);
  }
  Judge judge(module, std::move(facts));
  verdicts_.resize(count);
  reaches_.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!module.functions()[i].is_entry || !module.functions()[i].has_body) continue;
    reaches_[i] = judge.ReachOf(i);
    if (judge.tired()) {
      unknown_forms_[i] = "its module names more than can be followed";
      verdicts_[i] = {Cut::kWhole, unknown_forms_[i]};
      continue;
    }
    verdicts_[i] = judge.VerdictOf(i, reaches_[i]);
  }
}

}  // namespace gpusched::device::ptx
