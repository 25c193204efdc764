// Overhears what a policy answers, for the checker: its latest decision and the waits it declares.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "gpusched/policy/policy.h"

namespace gpusched::sim {

class WitnessedPolicy;

// What was overheard of the policy in force. Outlives the policies.
class Witness {
 public:
  std::unique_ptr<Policy> Wrap(std::unique_ptr<Policy>);

  // Nothing is known of a policy that was not wrapped.
  bool present() const { return policy_ != nullptr; }
  const Decision& latest() const { return latest_; }
  // By the session's view as the policy was last told of it.
  Duration LongestWait(SessionId) const;

 private:
  friend class WitnessedPolicy;
  WitnessedPolicy* policy_ = nullptr;
  Decision latest_;
};

// Every call passes through.
class WitnessedPolicy final : public Policy {
 public:
  WitnessedPolicy(Witness* witness, std::unique_ptr<Policy> policy)
      : witness_(witness), policy_(std::move(policy)) {}
  ~WitnessedPolicy() override {
    if (witness_->policy_ == this) witness_->policy_ = nullptr;
  }

  ShareRule share_rule() const override { return policy_->share_rule(); }
  void SessionAdded(const SessionView& view) override {
    InForce();
    Remember(view);
    policy_->SessionAdded(view);
  }
  void SessionRunnable(const SessionView& view) override {
    InForce();
    Remember(view);
    policy_->SessionRunnable(view);
  }
  void SessionIdle(SessionId id) override { policy_->SessionIdle(id); }
  void SessionChanged(const SessionView& view) override {
    Remember(view);
    policy_->SessionChanged(view);
  }
  void SessionRemoved(SessionId id) override { policy_->SessionRemoved(id); }
  void Charged(const SessionView& view, Duration charged) override {
    Remember(view);
    policy_->Charged(view, charged);
  }
  void SliceEnded(const SliceReport& slice) override { policy_->SliceEnded(slice); }
  Duration LongestWait(const SessionView& view) const override {
    return policy_->LongestWait(view);
  }
  Decision Decide(const DecisionContext& context) override {
    InForce();
    witness_->latest_ = policy_->Decide(context);
    return witness_->latest_;
  }

 private:
  friend class Witness;
  void InForce() {
    if (witness_->policy_ == this) return;
    witness_->policy_ = this;
    witness_->latest_ = Decision{};
  }
  void Remember(const SessionView& view) {
    if (view.id.slot >= views_.size()) views_.resize(view.id.slot + 1);
    views_[view.id.slot] = view;
  }

  Witness* const witness_;
  const std::unique_ptr<Policy> policy_;
  std::vector<SessionView> views_;  // by slot
};

inline std::unique_ptr<Policy> Witness::Wrap(std::unique_ptr<Policy> policy) {
  return std::make_unique<WitnessedPolicy>(this, std::move(policy));
}

inline Duration Witness::LongestWait(SessionId id) const {
  if (policy_ == nullptr || id.slot >= policy_->views_.size()) return kForever;
  const SessionView& view = policy_->views_[id.slot];
  return view.id == id ? policy_->LongestWait(view) : kForever;
}

}  // namespace gpusched::sim
