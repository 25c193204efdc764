// Blocks from branches, loops as strongly connected components, found again inside each loop.
#include "device/cuda/ptx/flow.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace gpusched::device::ptx {
namespace {

// Compilers nest a dozen loops at most; the search inside each costs its size again.
constexpr int kDeepestLoop = 64;
// Of (block, deciding branch) pairs: real functions have a few for each block.
constexpr std::size_t kMostDependences = 4'000'000;
// Of steps until a function's post-dominators stand still: a fraction of a second.
constexpr std::size_t kMostSteps = 100'000'000;

struct Label {
  std::uint32_t statement = 0;
  std::uint32_t scope = 0;
};
using Labels = std::unordered_map<std::string_view, std::vector<Label>>;

bool IsBranch(std::string_view opcode) {
  return opcode == "bra" || opcode.starts_with("bra.") || opcode.starts_with("brx.");
}
bool EndsFunction(std::string_view opcode) {
  return opcode == "ret" || opcode == "exit" || opcode == "trap" || opcode == "ret.uni";
}

// The label of that name that a branch in `scope` sees; null if there is none.
const Label* Find(const Labels& labels, std::string_view name, std::uint32_t scope,
                  const std::vector<std::uint32_t>& parents) {
  const auto found = labels.find(name);
  if (found == labels.end()) return nullptr;
  for (std::uint32_t at = scope;; at = parents[at]) {
    for (const Label& label : found->second) {
      if (label.scope == at) return &label;
    }
    if (at == 0) return nullptr;
  }
}

// Several texts of inline assembly may use one label's name, each in braces of its own.
struct Scopes {
  std::vector<std::uint32_t> parents{0};
  std::uint32_t now = 0;

  void Follow(Statement::Kind kind) {
    if (kind == Statement::Kind::kOpen) {
      parents.push_back(now);
      now = static_cast<std::uint32_t>(parents.size() - 1);
    } else if (kind == Statement::Kind::kClose) {
      now = parents[now];
    }
  }
};

}  // namespace

Flow::Flow(const Module& module, const Function& function) {
  FindBranches(module, function);
  if (straight_ || !trouble_.empty()) return;
  CutIntoBlocks(function);
  FindLoops();
}

void Flow::FindBranches(const Module& module, const Function& function) {
  const std::vector<Statement>& statements = module.statements();
  // Without a branch there is nothing to resolve.
  Labels labels;
  std::unordered_map<std::string_view, std::uint32_t> target_lists;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> branches;  // statement, scope
  Scopes scopes;
  std::uint32_t last_label = 0;
  for (std::uint32_t i = function.first_statement; i < function.end_statement; ++i) {
    const Statement& statement = statements[i];
    scopes.Follow(statement.kind);
    if (statement.kind == Statement::Kind::kLabel) {
      labels[module.Text(statement.first)].push_back({.statement = i, .scope = scopes.now});
      last_label = i;
    } else if (statement.kind == Statement::Kind::kDirective && i > function.first_statement &&
               last_label == i - 1 && module.Text(statement.first) == ".branchtargets") {
      target_lists[module.Text(statements[i - 1].first)] = i;
    } else if (statement.kind == Statement::Kind::kInstruction) {
      const char first = module.tokens()[statement.opcode].first;
      if (first != 'b' && first != 'r' && first != 'e' && first != 't') continue;
      const std::string_view opcode = module.Text(statement.opcode);
      if (IsBranch(opcode)) {
        branches.emplace_back(i, scopes.now);
      } else if (EndsFunction(opcode)) {
        jumps_.push_back({.statement = i, .falls_through = statement.guarded(), .targets = {}});
      }
    }
  }
  for (const auto& [at, scope] : branches) {
    const Statement& statement = statements[at];
    const std::string_view opcode = module.Text(statement.opcode);
    const std::string_view last = module.Text(statement.end - 1);
    Jump jump{.statement = at, .falls_through = statement.guarded(), .targets = {}};
    // Clang lets no lambda refer to structured bindings until version 16.
    const auto add = [&, at = at, scope = scope](std::string_view name) {
      const Label* label = Find(labels, name, scope, scopes.parents);
      if (label == nullptr) {
        trouble_ = "a branch to a label that is not there";
        return;
      }
      jump.targets.push_back(label->statement);
      if (label->statement <= at) straight_ = false;
    };
    if (opcode.starts_with("bra")) {
      add(last);
    } else if (const auto list = target_lists.find(last); list == target_lists.end()) {
      trouble_ = "an indexed branch without its list of targets";
    } else {
      const Statement& targets = statements[list->second];
      for (TokenIndex token = targets.first + 1; token < targets.end; ++token) {
        if (module.tokens()[token].kind == TokenKind::kWord) add(module.Text(token));
      }
    }
    if (!trouble_.empty()) return;
    jumps_.push_back(std::move(jump));
  }
  std::sort(jumps_.begin(), jumps_.end(),
            [](const Jump& a, const Jump& b) { return a.statement < b.statement; });
}

void Flow::CutIntoBlocks(const Function& function) {
  std::vector<std::uint32_t> leaders{function.first_statement};
  for (const Jump& jump : jumps_) {
    leaders.push_back(jump.statement + 1);
    leaders.insert(leaders.end(), jump.targets.begin(), jump.targets.end());
  }
  std::sort(leaders.begin(), leaders.end());
  leaders.erase(std::unique(leaders.begin(), leaders.end()), leaders.end());
  while (!leaders.empty() && leaders.back() >= function.end_statement) leaders.pop_back();

  const auto block_at = [&](std::uint32_t statement) {
    return static_cast<BlockIndex>(std::lower_bound(leaders.begin(), leaders.end(), statement) -
                                   leaders.begin());
  };
  auto jump = jumps_.begin();
  for (std::size_t i = 0; i < leaders.size(); ++i) {
    FlowBlock block{.first = leaders[i],
                    .end = i + 1 < leaders.size() ? leaders[i + 1] : function.end_statement};
    block.first_successor = static_cast<std::uint32_t>(successors_.size());
    const BlockIndex next = i + 1 < leaders.size() ? static_cast<BlockIndex>(i + 1) : kReturn;
    if (jump != jumps_.end() && jump->statement == block.end - 1) {
      if (jump->falls_through) successors_.push_back(next);
      for (std::uint32_t target : jump->targets) successors_.push_back(block_at(target));
      if (jump->targets.empty()) successors_.push_back(kReturn);
      ++jump;
    } else {
      successors_.push_back(next);
    }
    block.end_successor = static_cast<std::uint32_t>(successors_.size());
    blocks_.push_back(block);
  }
}

// Tarjan 1972 without recursion, among the blocks `within` only; components of one block count
// only if it is its own successor.
std::vector<std::vector<BlockIndex>> Flow::ComponentsOf(const std::vector<BlockIndex>& within) {
  const std::uint32_t search = ++searches_;
  for (BlockIndex block : within) {
    member_of_[block] = search;
    order_[block] = 0;
  }
  struct Visit {
    BlockIndex block;
    std::uint32_t next;  // successor
  };
  constexpr std::uint32_t kDone = UINT32_MAX;
  std::vector<std::vector<BlockIndex>> components;
  std::vector<Visit> path;
  std::vector<BlockIndex> open;
  std::uint32_t count = 0;
  const auto enter = [&](BlockIndex block) {
    order_[block] = low_[block] = ++count;
    open.push_back(block);
    path.push_back({block, 0});
  };
  for (BlockIndex root : within) {
    if (order_[root] != 0) continue;
    enter(root);
    while (!path.empty()) {
      Visit& visit = path.back();
      const BlockIndex block = visit.block;
      const auto next = successors(block);
      if (visit.next < next.size()) {
        const BlockIndex to = next[visit.next++];
        if (to == kReturn || member_of_[to] != search) continue;
        if (order_[to] == 0) {
          enter(to);
        } else if (order_[to] != kDone) {
          low_[block] = std::min(low_[block], order_[to]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) {
        low_[path.back().block] = std::min(low_[path.back().block], low_[block]);
      }
      if (low_[block] != order_[block]) continue;
      std::vector<BlockIndex> component;
      do {
        component.push_back(open.back());
        order_[open.back()] = kDone;
        open.pop_back();
      } while (component.back() != block);
      const bool own = std::find(next.begin(), next.end(), block) != next.end();
      if (component.size() > 1 || own) components.push_back(std::move(component));
    }
  }
  return components;
}

void Flow::FindLoops() {
  member_of_.assign(blocks_.size(), 0);
  order_.assign(blocks_.size(), 0);
  low_.assign(blocks_.size(), 0);
  std::vector<std::uint32_t> loop_of(blocks_.size(), 0);
  const std::vector<std::vector<BlockIndex>> predecessors = Predecessors();
  struct Part {
    std::vector<BlockIndex> blocks;
    int depth;
  };
  std::vector<Part> parts(1);
  parts[0].depth = 0;
  for (BlockIndex i = 0; i < blocks_.size(); ++i) parts[0].blocks.push_back(i);
  for (std::size_t at = 0; at < parts.size(); ++at) {
    const Part part = std::move(parts[at]);
    if (part.depth > kDeepestLoop) {
      trouble_ = "loops nested deeper than " + std::to_string(kDeepestLoop);
      return;
    }
    for (std::vector<BlockIndex>& component : ComponentsOf(part.blocks)) {
      const auto id = static_cast<std::uint32_t>(loops_.size() + 1);
      for (BlockIndex block : component) loop_of[block] = id;
      // Without the blocks by which it is entered the loop falls apart into its inner loops.
      Part inner{.blocks = {}, .depth = part.depth + 1};
      for (BlockIndex block : component) {
        const bool entry =
            block == 0 || std::any_of(predecessors[block].begin(), predecessors[block].end(),
                                      [&](BlockIndex from) { return loop_of[from] != id; });
        if (!entry) inner.blocks.push_back(block);
      }
      // One that nothing enters is dead code.
      const bool entered = inner.blocks.size() < component.size();
      loops_.push_back({std::move(component)});
      if (entered && !inner.blocks.empty()) parts.push_back(std::move(inner));
    }
  }
}

std::vector<std::vector<BlockIndex>> Flow::Predecessors() const {
  std::vector<std::vector<BlockIndex>> predecessors(blocks_.size() + 1);
  for (BlockIndex i = 0; i < blocks_.size(); ++i) {
    for (BlockIndex to : successors(i)) {
      predecessors[to == kReturn ? blocks_.size() : to].push_back(i);
    }
  }
  return predecessors;
}

// Immediate post-dominators (Cooper, Harvey and Kennedy 2001) on the reversed graph, whose root is
// the return. kReturn for blocks that only the return post-dominates, or that never return.
std::vector<BlockIndex> Flow::PostDominators() {
  const auto count = static_cast<BlockIndex>(blocks_.size());
  const BlockIndex root = count;  // the return as a vertex
  const std::vector<std::vector<BlockIndex>> predecessors = Predecessors();
  std::vector<std::uint32_t> number(count + 1, UINT32_MAX);  // in reverse post-order
  std::vector<BlockIndex> post_order;
  std::vector<bool> seen(count + 1, false);
  std::vector<std::pair<BlockIndex, std::size_t>> path{{root, 0}};
  seen[root] = true;
  while (!path.empty()) {
    auto& [block, next] = path.back();
    if (next < predecessors[block].size()) {
      const BlockIndex to = predecessors[block][next++];
      if (seen[to]) continue;
      seen[to] = true;
      path.emplace_back(to, 0);
    } else {
      post_order.push_back(block);
      path.pop_back();
    }
  }
  for (std::size_t i = 0; i < post_order.size(); ++i) {
    number[post_order[i]] = static_cast<std::uint32_t>(post_order.size() - 1 - i);
  }
  std::vector<BlockIndex> dominator(count + 1, kReturn);
  dominator[root] = root;
  std::size_t steps = 0;
  const auto meet = [&](BlockIndex a, BlockIndex b) {
    while (a != b) {
      ++steps;
      while (number[a] > number[b]) a = dominator[a], ++steps;
      while (number[b] > number[a]) b = dominator[b], ++steps;
    }
    return a;
  };
  bool changed = true;
  while (changed) {
    if (steps > kMostSteps) {
      trouble_ = "its control flow is too tangled to be told";
      break;
    }
    changed = false;
    for (std::size_t i = post_order.size(); i-- > 0;) {
      const BlockIndex block = post_order[i];
      ++steps;
      if (block == root) continue;
      BlockIndex best = kReturn;
      for (BlockIndex to : successors(block)) {
        const BlockIndex vertex = to == kReturn ? root : to;
        if (dominator[vertex] == kReturn) continue;
        best = best == kReturn ? vertex : meet(vertex, best);
      }
      if (best != dominator[block]) {
        dominator[block] = best;
        changed = true;
      }
    }
  }
  for (BlockIndex& block : dominator) {
    if (block == root) block = kReturn;
  }
  return dominator;
}

std::vector<std::vector<BlockIndex>> Flow::ControlDependences() {
  const std::vector<BlockIndex> dominator = PostDominators();
  std::vector<std::vector<BlockIndex>> deciders(blocks_.size());
  std::size_t total = 0;
  for (BlockIndex i = 0; i < blocks_.size() && trouble_.empty(); ++i) {
    const auto next = successors(i);
    if (next.size() < 2) continue;
    for (BlockIndex at : next) {
      for (; at != kReturn && at != dominator[i]; at = dominator[at]) {
        if (!deciders[at].empty() && deciders[at].back() == i) break;
        deciders[at].push_back(i);
        if (++total > kMostDependences) {
          trouble_ = "its control flow is too tangled to be told";
          return {};
        }
      }
    }
  }
  if (!trouble_.empty()) return {};
  return deciders;
}

}  // namespace gpusched::device::ptx
