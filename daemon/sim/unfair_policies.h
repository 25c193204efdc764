// Policies that look right and are not: what the checker and its promises are tried on.
#pragma once

#include <memory>
#include <vector>

#include "gpusched/policy/policy.h"
#include "sim/random.h"

namespace gpusched::sim {

// Whoever may run, by slot.
class RunnableSet {
 public:
  void Add(SessionId id) {
    if (id.slot >= ids_.size()) ids_.resize(id.slot + 1);
    if (ids_[id.slot].serial == 0) ++count_;
    ids_[id.slot] = id;
  }
  void Remove(SessionId id) {
    if (!Contains(id)) return;
    ids_[id.slot] = SessionId{};
    --count_;
  }
  bool Contains(SessionId id) const { return id.slot < ids_.size() && ids_[id.slot] == id; }
  std::size_t count() const { return count_; }
  const std::vector<SessionId>& slots() const { return ids_; }  // serial 0: nobody

 private:
  std::vector<SessionId> ids_;
  std::size_t count_ = 0;
};

// Least virtual time first: each session's charged time over its weight, the least is next. With
// one session of weight 99 beside 63 of weight 1 all of these are served in a row.
class LeastVirtualTime final : public Policy {
 public:
  ShareRule share_rule() const override { return ShareRule::kWeighted; }
  void SessionAdded(const SessionView&) override;
  void SessionRunnable(const SessionView&) override;
  void SessionIdle(SessionId id) override { runnable_.Remove(id); }
  void SessionChanged(const SessionView& view) override;
  void SessionRemoved(SessionId id) override { runnable_.Remove(id); }
  void Charged(const SessionView&, Duration) override;
  Decision Decide(const DecisionContext&) override;

 private:
  struct Clock {
    double virtual_time = 0, weight = 1;
  };
  RunnableSet runnable_;
  std::vector<Clock> clocks_;  // by slot
};

// Plain weighted round robin: everybody in turn, for a slice as long as its weight is large.
class WeightedRoundRobin final : public Policy {
 public:
  ShareRule share_rule() const override { return ShareRule::kWeighted; }
  void SessionAdded(const SessionView&) override;
  void SessionRunnable(const SessionView& view) override { runnable_.Add(view.id); }
  void SessionIdle(SessionId id) override { runnable_.Remove(id); }
  void SessionChanged(const SessionView& view) override { SessionAdded(view); }
  void SessionRemoved(SessionId id) override { runnable_.Remove(id); }
  void Charged(const SessionView&, Duration) override { served_ = true; }
  Decision Decide(const DecisionContext&) override;

 private:
  RunnableSet runnable_;
  std::vector<std::int64_t> weights_;  // by slot
  std::size_t turn_ = 0;
  bool served_ = false;
};

// Answers that make no sense, between some that do.
class Nonsense final : public Policy {
 public:
  explicit Nonsense(std::uint64_t seed) : random_(seed) {}
  ShareRule share_rule() const override { return ShareRule::kNone; }
  void SessionRunnable(const SessionView& view) override { runnable_.Add(view.id); }
  void SessionIdle(SessionId id) override { runnable_.Remove(id); }
  void SessionRemoved(SessionId id) override { runnable_.Remove(id); }
  Decision Decide(const DecisionContext&) override;

 private:
  Random random_;
  RunnableSet runnable_;
};

// Takes its time: leaves the device idle now and then, and says until when.
class Hesitant final : public Policy {
 public:
  explicit Hesitant(std::uint64_t seed) : random_(seed) {}
  ShareRule share_rule() const override { return ShareRule::kNone; }
  void SessionRunnable(const SessionView& view) override { runnable_.Add(view.id); }
  void SessionIdle(SessionId id) override { runnable_.Remove(id); }
  void SessionRemoved(SessionId id) override { runnable_.Remove(id); }
  Decision Decide(const DecisionContext&) override;

 private:
  Random random_;
  RunnableSet runnable_;
  Time rests_until_{};
};

}  // namespace gpusched::sim
