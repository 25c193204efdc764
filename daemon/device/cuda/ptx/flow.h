// Where control goes within one function: blocks, loops in loops, and who decides what runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/ptx/module.h"

namespace gpusched::device::ptx {

using BlockIndex = std::uint32_t;
inline constexpr BlockIndex kReturn = UINT32_MAX;  // the successor that leaves the function

struct FlowBlock {
  std::uint32_t first = 0, end = 0;  // statements
  std::uint32_t first_successor = 0, end_successor = 0;
};

struct Loop {
  std::vector<BlockIndex> blocks;
};

class Flow {
 public:
  Flow(const Module& module, const Function& function);

  // "" unless the flow cannot be told: a branch to nowhere, nesting past any real code.
  const std::string& trouble() const { return trouble_; }
  // No branch goes back: then there are neither loops nor blocks.
  bool straight() const { return straight_; }
  const std::vector<FlowBlock>& blocks() const { return blocks_; }
  std::span<const BlockIndex> successors(BlockIndex block) const {
    return std::span(successors_)
        .subspan(blocks_[block].first_successor,
                 blocks_[block].end_successor - blocks_[block].first_successor);
  }
  const std::vector<Loop>& loops() const { return loops_; }  // outer ones before their inner ones

  // For each block the blocks whose branch decides whether it runs (Ferrante, Ottenstein and
  // Warren 1987). Computed when asked; empty with trouble() set where that would take too long.
  std::vector<std::vector<BlockIndex>> ControlDependences();

 private:
  struct Branch {
    std::uint32_t statement = 0;
    std::uint32_t scope = 0;
    std::vector<std::string_view> targets;
  };
  void FindBranches(const Module& module, const Function& function);
  void CutIntoBlocks(const Function& function);
  void FindLoops();
  std::vector<std::vector<BlockIndex>> ComponentsOf(const std::vector<BlockIndex>& within);
  std::vector<std::vector<BlockIndex>> Predecessors() const;  // the last: of the return
  std::vector<BlockIndex> PostDominators();

  std::string trouble_;
  bool straight_ = true;
  std::vector<FlowBlock> blocks_;
  std::vector<BlockIndex> successors_;
  std::vector<Loop> loops_;
  std::vector<std::uint32_t> parent_scope_;
  // What a statement ends with; the targets are statements.
  struct Jump {
    std::uint32_t statement = 0;
    bool falls_through = false;
    std::vector<std::uint32_t> targets;
  };
  std::vector<Jump> jumps_;
  // Of the search for components, by block.
  std::vector<std::uint32_t> member_of_, order_, low_;
  std::uint32_t searches_ = 0;
};

}  // namespace gpusched::device::ptx
