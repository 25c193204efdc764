// What threads do together: barriers, and the instructions of a whole warp.
#include <bit>

#include "support/fake_cudart/ptx_block.h"

namespace gpusched::test::ptx {

void BlockRun::Barrier(Thread& thread, const Op& op) {
  if (op.Has("arrive")) return Unknown(op);
  if (op.Has("warp")) {
    thread.state = Thread::State::kAtWarp;
    return;
  }
  const bool reduces = op.Has("red");
  const std::size_t first = reduces ? 1 : 0;
  const std::size_t numbers = op.operands.size() - first - (reduces ? 1 : 0);
  thread.barrier = static_cast<std::uint32_t>(Read(thread, op.operands[first]));
  thread.expected =
      numbers > 1 ? static_cast<std::uint32_t>(Read(thread, op.operands[first + 1])) : 0;
  thread.state = Thread::State::kAtBarrier;
}

bool BlockRun::Release() {
  const bool warps = ReleaseWarps();
  return warps || ReleaseBarriers();
}

// All threads of a barrier's number go on when those it counts have come.
bool BlockRun::ReleaseBarriers() {
  bool released = false;
  std::uint32_t live = 0;
  for (const Thread& thread : threads_) live += thread.state != Thread::State::kDone ? 1 : 0;
  constexpr std::uint32_t kBarriers = 16;
  for (std::uint32_t barrier = 0; barrier < kBarriers; ++barrier) {
    std::vector<Thread*> here;
    for (Thread& thread : threads_) {
      if (thread.state == Thread::State::kAtBarrier && thread.barrier == barrier) {
        here.push_back(&thread);
      }
    }
    if (here.empty()) continue;
    const std::uint32_t expected = here[0]->expected == 0 ? live : here[0]->expected;
    if (here.size() < expected) continue;
    std::uint32_t holds = 0;
    const auto op_of = [](Thread& thread) -> const Op& {
      const Frame& frame = thread.frames.back();
      return frame.function->ops[frame.next - 1];
    };
    for (Thread* thread : here) {
      const Op& op = op_of(*thread);
      if (op.Has("red") && Read(*thread, op.operands.back()) != 0) ++holds;
    }
    for (Thread* thread : here) {
      const Op& op = op_of(*thread);
      thread->state = Thread::State::kRuns;
      if (!op.Has("red")) continue;
      if (op.Has("popc")) {
        Write(*thread, op.operands[0], holds, Type::kU32);
      } else {
        const bool all = holds == here.size();
        Write(*thread, op.operands[0], op.Has("and") ? all : holds > 0, Type::kPredicate);
      }
    }
    released = true;
  }
  return released;
}

// Threads of a warp that stand at the same instruction go on together when all that its mask names
// have come or are done.
bool BlockRun::ReleaseWarps() {
  bool released = false;
  for (std::size_t first = 0; first < threads_.size(); first += kWarp) {
    const std::size_t end = std::min(first + kWarp, threads_.size());
    for (std::size_t i = first; i < end; ++i) {
      if (threads_[i].state != Thread::State::kAtWarp) continue;
      const Frame& frame = threads_[i].frames.back();
      const Op& op = frame.function->ops[frame.next - 1];
      const std::uint64_t mask = Read(threads_[i], op.operands.back());
      std::vector<Thread*> together;
      bool complete = true;
      for (std::size_t other = first; other < end; ++other) {
        Thread& thread = threads_[other];
        if ((mask >> (other - first) & 1) == 0 || thread.state == Thread::State::kDone) continue;
        const bool here = thread.state == Thread::State::kAtWarp &&
                          thread.frames.back().function == frame.function &&
                          thread.frames.back().next == frame.next;
        complete = complete && here;
        together.push_back(&thread);
      }
      if (!complete || together.empty()) continue;
      Together(together, op);
      for (Thread* thread : together) thread->state = Thread::State::kRuns;
      released = true;
    }
  }
  return released;
}

void BlockRun::Together(const std::vector<Thread*>& threads, const Op& op) {
  if (op.code == Code::k_bar || op.code == Code::k_barrier) return;
  // What each brings, before anything is written.
  WarpValues value{};
  std::uint32_t present = 0, holds = 0;
  for (Thread* thread : threads) {
    const std::uint32_t lane = thread->index % kWarp;
    value[lane] = op.code == Code::k_elect ? 0 : Read(*thread, op.operands[1]);
    present |= 1u << lane;
    if (value[lane] != 0) holds |= 1u << lane;
  }
  std::uint64_t reduced = 0;
  if (op.code == Code::k_redux) {
    Op combine;
    combine.type = op.type;
    combine.modifiers = op.modifiers;
    reduced = value[threads[0]->index % kWarp];
    for (std::size_t i = 1; i < threads.size(); ++i) {
      const auto next = Combine(combine, reduced, value[threads[i]->index % kWarp], 0);
      if (!next) return Unknown(op);
      reduced = *next;
    }
  }
  for (Thread* thread : threads) {
    const std::uint32_t lane = thread->index % kWarp;
    switch (op.code) {
      case Code::k_vote: Vote(*thread, op, present, holds); break;
      case Code::k_shfl: Shuffle(*thread, op, value); break;
      case Code::k_match: Match(*thread, op, value, present); break;
      case Code::k_redux: Write(*thread, op.operands[0], reduced, Type::kU32); break;
      case Code::k_elect: {
        const auto leader = static_cast<std::uint32_t>(std::countr_zero(present));
        Write(*thread, op.operands[0], leader, Type::kU32);
        if (op.second != kNoRegister) Register(*thread, op.second) = lane == leader ? 1 : 0;
        break;
      }
      default: return Unknown(op);
    }
  }
}

void BlockRun::Vote(Thread& thread, const Op& op, std::uint32_t present, std::uint32_t holds) {
  const bool all = holds == present;
  if (op.Has("ballot")) return Write(thread, op.operands[0], holds, Type::kU32);
  if (op.Has("all")) return Write(thread, op.operands[0], all, Type::kPredicate);
  if (op.Has("any")) return Write(thread, op.operands[0], holds != 0, Type::kPredicate);
  Write(thread, op.operands[0], all || holds == 0, Type::kPredicate);
}

void BlockRun::Shuffle(Thread& thread, const Op& op, const WarpValues& value) {
  const std::uint32_t lane = thread.index % kWarp;
  const auto by = static_cast<std::uint32_t>(Read(thread, op.operands[2]) & 31);
  const auto clamp = static_cast<std::uint32_t>(Read(thread, op.operands[3]));
  const std::uint32_t segment = clamp >> 8 & 31, most = clamp & 31;
  const std::uint32_t last = (lane & segment) | (most & ~segment), least = lane & segment;
  std::int64_t from = lane;
  bool inside = true;
  if (op.Has("up")) {
    from = std::int64_t{lane} - by;
    inside = from >= static_cast<std::int64_t>(last);
  } else if (op.Has("down")) {
    from = std::int64_t{lane} + by;
    inside = from <= last;
  } else if (op.Has("bfly")) {
    from = lane ^ by;
    inside = from <= last;
  } else {
    from = least | (by & ~segment);
    inside = from <= last;
  }
  if (!inside) from = lane;
  Write(thread, op.operands[0], value[static_cast<std::size_t>(from & 31)], Type::kU32);
  if (op.second != kNoRegister) Register(thread, op.second) = inside ? 1 : 0;
}

void BlockRun::Match(Thread& thread, const Op& op, const WarpValues& value, std::uint32_t present) {
  const std::uint32_t lane = thread.index % kWarp;
  std::uint32_t same = 0;
  for (std::uint32_t i = 0; i < kWarp; ++i) {
    if ((present >> i & 1) != 0 && Normal(op.type, value[i]) == Normal(op.type, value[lane])) {
      same |= 1u << i;
    }
  }
  const bool all = same == present;
  Write(thread, op.operands[0], op.Has("all") ? (all ? present : 0) : same, Type::kU32);
  if (op.second != kNoRegister) Register(thread, op.second) = all ? 1 : 0;
}

}  // namespace gpusched::test::ptx
