// Holds the policy in force and checks every answer it gives.
#pragma once

#include <memory>
#include <string>

#include "core/event.h"
#include "gpusched/policy/policy.h"

namespace gpusched::core {

// The truth an answer is held against.
struct DecisionFacts {
  bool chosen_is_runnable = false;  // the session named by a Run answer
  bool anyone_is_runnable = false;
};

class PolicyHost {
 public:
  PolicyHost(PolicySpec spec, std::unique_ptr<Policy> policy)
      : spec_(std::move(spec)), policy_(std::move(policy)) {}

  void Replace(PolicySpec spec, std::unique_ptr<Policy> policy) {
    spec_ = std::move(spec);
    policy_ = std::move(policy);
  }

  const PolicySpec& spec() const { return spec_; }
  Policy& policy() { return *policy_; }
  const Policy& policy() const { return *policy_; }

  // Whether an answer may be acted on.
  static bool Sound(const DecisionContext& context, const Decision& decision,
                    const DecisionFacts& facts) {
    if (decision.ask_again <= context.now) return false;  // asked again at once, for ever
    switch (decision.kind) {
      case Decision::Kind::kKeep: return context.current.has_value();
      case Decision::Kind::kRun:
        return facts.chosen_is_runnable && decision.length > Duration::zero() &&
               decision.length <= context.longest_slice;
      case Decision::Kind::kIdle: return !facts.anyone_is_runnable || decision.ask_again != kNever;
    }
    return false;  // a third party's enum
  }
  // What is wrong with one that is not sound, in words.
  static std::string Fault(const DecisionContext&, const Decision&, const DecisionFacts&);

  // The policy everyone falls back to, and its spec under the next generation.
  static std::unique_ptr<Policy> Fallback();
  PolicySpec FallbackSpec() const;

 private:
  PolicySpec spec_;
  std::unique_ptr<Policy> policy_;
};

}  // namespace gpusched::core
