// Follows values from loads that others may change to the branches by which a loop is left.
#include "device/cuda/ptx/dependence.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "device/cuda/ptx/operands.h"

namespace gpusched::device::ptx {
namespace {

// Of instruction visits over all loops of a function: a second's worth, where real ones need a
// thousandth.
constexpr std::size_t kMostVisits = 50'000'000;

// What a value may depend on.
using Marks = std::uint8_t;
constexpr Marks kByCounter = 1, kByFlag = 2, kByProbe = 4;

class LoopReader {
 public:
  LoopReader(const Module& module, Flow& flow, const Operands& operands)
      : module_(module),
        flow_(flow),
        operands_(operands),
        marks_(operands.name_count(), 0),
        in_loop_(flow.blocks().size(), 0),
        block_marks_(flow.blocks().size(), 0),
        written_in_(operands.name_count(), 0),
        asked_in_(operands.name_count(), 0) {}

  WaitFound Read(const Loop& loop);
  bool tired() const { return visits_ > kMostVisits; }

 private:
  template <typename Visitor>
  void ForEach(const Loop& loop, Visitor visit) const {
    for (BlockIndex block : loop.blocks) {
      for (std::uint32_t i = operands_.first_of(block); i < operands_.end_of(block); ++i) {
        visit(block, operands_.instructions()[i], i);
      }
    }
  }
  bool Leaves(BlockIndex block, const Instruction& instruction) const;
  Marks MarksOf(const Instruction& instruction) const;
  // Spreads the sources' marks over the loop until nothing changes. With `probe` that instruction
  // is the only source, and who decides what runs does not count.
  void Spread(const Loop& loop, std::optional<std::uint32_t> probe);
  bool IsRetry(const Loop& loop, std::uint32_t exchange);
  bool WaitsByPlainLoad(const Loop& loop);
  void FindWriters();
  std::string Place(const Instruction& instruction) const {
    return module_.Place(module_.statements()[instruction.statement].opcode);
  }

  const Module& module_;
  Flow& flow_;
  const Operands& operands_;
  std::vector<Marks> marks_;            // by name
  std::vector<std::uint32_t> in_loop_;  // by block: the loop last read that holds it
  std::vector<Marks> block_marks_;      // of the branches that decide whether it runs
  std::vector<std::vector<BlockIndex>> deciders_;
  std::vector<bool> is_retry_;             // by instruction, for the loop being read
  std::vector<std::uint32_t> written_in_;  // by name: the loop last read that writes it
  std::vector<std::uint32_t> asked_in_;    // by name: likewise, on whose value its end depends
  std::vector<std::vector<std::uint32_t>> writers_;  // by name: instructions of the function
  std::uint32_t loop_ = 0;
  std::size_t visits_ = 0;
};

bool LoopReader::Leaves(BlockIndex block, const Instruction& instruction) const {
  if (instruction.is_trap || instruction.statement + 1 != flow_.blocks()[block].end) return false;
  const auto successors = flow_.successors(block);
  if (successors.size() < 2) return false;
  return std::any_of(successors.begin(), successors.end(),
                     [&](BlockIndex to) { return to == kReturn || in_loop_[to] != loop_; });
}

Marks LoopReader::MarksOf(const Instruction& instruction) const {
  Marks marks = 0;
  for (NameIndex name : operands_.reads(instruction)) marks |= marks_[name];
  return marks;
}

void LoopReader::Spread(const Loop& loop, std::optional<std::uint32_t> probe) {
  ForEach(loop, [&](BlockIndex block, const Instruction& instruction, std::uint32_t) {
    for (NameIndex name : operands_.reads(instruction)) marks_[name] = 0;
    for (NameIndex name : operands_.writes(instruction)) marks_[name] = 0;
    block_marks_[block] = 0;
  });
  for (bool changed = true; changed && !tired();) {
    changed = false;
    ForEach(loop, [&](BlockIndex block, const Instruction& instruction, std::uint32_t i) {
      ++visits_;
      Marks marks = MarksOf(instruction);
      if (probe) {
        if (*probe == i) marks |= kByProbe;
      } else {
        marks |= block_marks_[block];
        switch (instruction.source) {
          case Source::kNone: break;
          case Source::kCounter: marks |= kByCounter; break;
          case Source::kExchange: marks |= is_retry_[i] ? 0 : kByFlag; break;
          case Source::kFlag: marks |= kByFlag; break;
        }
      }
      for (NameIndex name : operands_.writes(instruction)) {
        changed = changed || (marks_[name] | marks) != marks_[name];
        marks_[name] |= marks;
      }
    });
    if (probe) continue;
    // A branch on a marked value marks all that it decides about.
    for (BlockIndex block : loop.blocks) {
      Marks marks = block_marks_[block];
      for (BlockIndex decider : deciders_[block]) {
        ++visits_;
        if (in_loop_[decider] != loop_ || operands_.end_of(decider) == 0) continue;
        marks |= block_marks_[decider];
        if (operands_.end_of(decider) > operands_.first_of(decider)) {
          marks |= MarksOf(operands_.instructions()[operands_.end_of(decider) - 1]);
        }
      }
      changed = changed || marks != block_marks_[block];
      block_marks_[block] = marks;
    }
  }
}

// A retry compares memory with what the same instruction returned the time before: it fails only
// when another thread has succeeded. A lock compares with a constant.
bool LoopReader::IsRetry(const Loop& loop, std::uint32_t exchange) {
  const NameIndex compared = operands_.instructions()[exchange].compared;
  if (compared == kNoName) return false;
  Spread(loop, exchange);
  return (marks_[compared] & kByProbe) != 0;
}

// Nothing but a load decides about the end, from a place that stays the same, and nothing else in
// the loop moves on: only another block can end it.
bool LoopReader::WaitsByPlainLoad(const Loop& loop) {
  std::vector<std::uint32_t> stores;
  ForEach(loop, [&](BlockIndex, const Instruction& instruction, std::uint32_t i) {
    for (NameIndex name : operands_.writes(instruction)) {
      written_in_[name] = loop_;
      if (name < kFirstRegister && (stores.empty() || stores.back() != i)) stores.push_back(i);
    }
  });
  if (writers_.empty()) FindWriters();
  std::vector<NameIndex> open;
  const auto ask = [&](const Instruction& instruction) {
    for (NameIndex name : operands_.reads(instruction)) {
      if (written_in_[name] == loop_ && asked_in_[name] != loop_) open.push_back(name);
      asked_in_[name] = loop_;
    }
  };
  bool loads = false, can_end = false;
  ForEach(loop, [&](BlockIndex block, const Instruction& instruction, std::uint32_t) {
    if (!Leaves(block, instruction)) return;
    can_end = true;
    ask(instruction);
  });
  for (std::size_t at = 0; at < open.size(); ++at) {
    ++visits_;
    const NameIndex name = open[at];
    if (name < kFirstRegister) {
      for (std::uint32_t store : stores) ask(operands_.instructions()[store]);
      continue;
    }
    // Two writers: it moves on, as counters and pointers along a list do.
    if (writers_[name].size() > 1) return false;
    const Instruction& writer = operands_.instructions()[writers_[name].front()];
    loads = loads || writer.loads_global;
    const auto reads = operands_.reads(writer);
    // "add %r1, %r1, 1".
    if (std::find(reads.begin(), reads.end(), name) != reads.end()) return false;
    ask(writer);
  }
  return can_end && loads;
}

void LoopReader::FindWriters() {
  writers_.resize(operands_.name_count());
  for (std::uint32_t i = 0; i < operands_.instructions().size(); ++i) {
    for (NameIndex name : operands_.writes(operands_.instructions()[i])) {
      if (name >= kFirstRegister) writers_[name].push_back(i);
    }
  }
}

WaitFound LoopReader::Read(const Loop& loop) {
  ++loop_;
  for (BlockIndex block : loop.blocks) in_loop_[block] = loop_;
  std::vector<std::uint32_t> exchanges;
  bool sources = false, loads = false;
  ForEach(loop, [&](BlockIndex, const Instruction& instruction, std::uint32_t i) {
    sources = sources || instruction.source != Source::kNone;
    loads = loads || instruction.loads_global;
    if (instruction.source == Source::kExchange) exchanges.push_back(i);
  });
  if (!sources && !loads) return {};
  if (loads && WaitsByPlainLoad(loop)) {
    return {Wait::kOthers, "a loop near " +
                               Place(operands_.instructions()[operands_.first_of(
                                   *std::min_element(loop.blocks.begin(), loop.blocks.end()))]) +
                               " ends only when memory changes that it does not write"};
  }
  if (!sources) return {};
  if (deciders_.empty()) {
    deciders_ = flow_.ControlDependences();
    if (!flow_.trouble().empty()) return {Wait::kOthers, flow_.trouble()};
  }
  is_retry_.resize(operands_.instructions().size());
  for (std::uint32_t exchange : exchanges) is_retry_[exchange] = IsRetry(loop, exchange);
  Spread(loop, std::nullopt);
  WaitFound found;
  ForEach(loop, [&](BlockIndex block, const Instruction& instruction, std::uint32_t) {
    if (!Leaves(block, instruction)) return;
    const Marks marks = MarksOf(instruction) | block_marks_[block];
    if ((marks & kByFlag) != 0 && found.wait != Wait::kOthers) {
      found = {Wait::kOthers,
               "the loop left at " + Place(instruction) +
                   " may wait for what another block writes (a volatile, acquire, relaxed or "
                   "atomic access decides about its end)"};
    } else if ((marks & kByCounter) != 0 && found.wait == Wait::kNone) {
      found = {Wait::kQueue, "the loop left at " + Place(instruction) +
                                 " takes work by an atomic counter until there is none: a part may "
                                 "do the work of all"};
    }
  });
  return found;
}

}  // namespace

WaitFound FindWait(const Module& module, const Function& function,
                   const std::vector<bool>& callees_touch_others) {
  Flow flow(module, function);
  if (!flow.trouble().empty()) return {Wait::kOthers, flow.trouble()};
  if (flow.straight()) return {};
  const Operands operands(module, function, flow, callees_touch_others);
  LoopReader reader(module, flow, operands);
  WaitFound worst;
  for (const Loop& loop : flow.loops()) {
    WaitFound found = reader.Read(loop);
    if (reader.tired()) return {Wait::kOthers, "its control flow is too tangled to be told"};
    if (found.wait > worst.wait) worst = std::move(found);
    if (worst.wait == Wait::kOthers) break;
  }
  return worst;
}

}  // namespace gpusched::device::ptx
