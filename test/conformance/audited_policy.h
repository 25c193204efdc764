// A policy with an auditor in front: every call passes through, every answer is held against the
// contract.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/policy/policy.h"
#include "gpusched/units.h"

namespace gpusched::testing {

// Stricter than the daemon's own host: it asks twice, knows who is waiting since when, and lets
// nobody wait for longer than declared plus what no policy can help: work in flight.
class AuditedPolicy final : public Policy {
 public:
  // `faults` outlives the policy. `beyond_help`: the longest that work in flight may take.
  AuditedPolicy(std::unique_ptr<Policy> policy, std::vector<std::string>* faults,
                Duration beyond_help)
      : policy_(std::move(policy)), faults_(faults), beyond_help_(beyond_help) {}

  ShareRule share_rule() const override { return policy_->share_rule(); }
  void SessionAdded(const SessionView& view) override { policy_->SessionAdded(view); }
  void SessionRunnable(const SessionView& view) override {
    // Declared before and after: what was said once is what the session may count on.
    waiting_[view.id] = {view.waiting_since, Duration(0)};
    policy_->SessionRunnable(view);
    Declare(view);
  }
  void SessionIdle(SessionId id) override {
    waiting_.erase(id);
    policy_->SessionIdle(id);
  }
  void SessionChanged(const SessionView& view) override {
    policy_->SessionChanged(view);
    Declare(view);
  }
  void SessionRemoved(SessionId id) override {
    waiting_.erase(id);
    policy_->SessionRemoved(id);
  }
  void Charged(const SessionView& view, Duration charged) override {
    policy_->Charged(view, charged);
    Declare(view);
  }
  void SliceEnded(const SliceReport& slice) override { policy_->SliceEnded(slice); }
  Duration LongestWait(const SessionView& view) const override {
    return policy_->LongestWait(view);
  }

  Decision Decide(const DecisionContext& context) override {
    const Decision decision = policy_->Decide(context);
    const Decision again = policy_->Decide(context);
    if (decision.kind != again.kind || !(decision.session == again.session) ||
        decision.length != again.length || decision.rescue != again.rescue ||
        decision.ask_again != again.ask_again) {
      Fault("changed its mind when asked again at once");
    }
    CheckAnswer(context, decision);
    CheckWaits(context, decision);
    return decision;
  }

 private:
  struct Waiting {
    Time since{};
    Duration declared{0};  // the longest ever declared since
  };

  void Declare(const SessionView& view) {
    const auto found = waiting_.find(view.id);
    if (found == waiting_.end()) return;
    Waiting& waiting = found->second;
    if (waiting.since != view.waiting_since) waiting = {view.waiting_since, Duration(0)};
    waiting.declared = std::max(waiting.declared, policy_->LongestWait(view));
    view_[view.id] = view;
  }

  void CheckAnswer(const DecisionContext& context, const Decision& decision) {
    switch (decision.kind) {
      case Decision::Kind::kKeep:
        if (!context.current) Fault("kept a slice that is not there");
        break;
      case Decision::Kind::kRun:
        if (!waiting_.contains(decision.session)) Fault("chose a session that cannot run");
        if (decision.length <= Duration(0) || decision.length > context.longest_slice) {
          Fault("granted a slice of " + FormatDuration(decision.length));
        }
        break;
      case Decision::Kind::kIdle:
        if (!waiting_.empty()) Fault("left the device idle with work waiting");
        break;
    }
    if (decision.ask_again <= context.now) Fault("wants to be asked again in the past");
  }

  // Whoever is being served or about to be is not waiting any more.
  void CheckWaits(const DecisionContext& context, const Decision& decision) {
    for (auto& [id, waiting] : waiting_) {
      if (context.current && context.current->session == id) continue;
      if (decision.kind == Decision::Kind::kRun && decision.session == id) continue;
      waiting.declared = std::max(waiting.declared, policy_->LongestWait(view_[id]));
      const Duration wait = context.now - waiting.since;
      if (wait <= Plus(waiting.declared, beyond_help_)) continue;
      Fault("let session " + std::to_string(id.serial) + " wait for " + FormatDuration(wait) +
            " and had declared " + FormatDuration(waiting.declared));
      waiting.since = context.now;  // said once
    }
  }

  void Fault(std::string what) {
    constexpr std::size_t kEnough = 10;
    if (faults_->size() < kEnough) faults_->push_back(std::move(what));
  }

  std::unique_ptr<Policy> policy_;
  std::vector<std::string>* faults_;
  const Duration beyond_help_;
  std::map<SessionId, Waiting> waiting_;
  std::map<SessionId, SessionView> view_;  // as last told
};

}  // namespace gpusched::testing
