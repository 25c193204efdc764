// What the checker holds a scheduler to, by name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "gpusched/policy/types.h"

namespace gpusched::sim {

enum class Rule : std::uint8_t {
  kOneAtATime,         // nobody beside one of its class of priority, nor started beside a higher
  kOnlyRunnableStart,  // open, not paused, with work to start, on a device that is there
  kInOrderOnce,        // within a queue: every block once, one job after the other
  kEndsOnce,           // every job ends exactly once, and as it should
  kRefusedForCause,    // a job is refused only for a reason there is
  kChargedSums,        // accounts and slices are what the commands' times add up to
  kNeverIdle,          // not with a session runnable, but until a policy's "ask again at"
  kMaxKept,            // a session's max
  kStrictKept,         // what strict sessions leave to the others
  kAskedAndGot,        // weighted_share against the fluid reference
  kDeclaredWait,       // nobody waits longer than the policy says
  kNoInversion,        // preemptive_priority: a lower session starts only to be rescued
  kPreemptionBound,    // work in flight, and the wait for it
  kRescuesBounded,     // rescues take no more than their share of any second
  kOneGeneration,      // a slice names the policy that granted it
  kBoundedQueues,      // no more of anything than the limits allow
  kSoundPolicyStays,   // a built-in policy is never ejected
};
inline constexpr std::size_t kRules = 17;

inline constexpr std::array<std::string_view, kRules> kRuleNames = {
    "one_at_a_time",     "only_runnable_start", "in_order_once",  "ends_once",
    "refused_for_cause", "charged_sums",        "never_idle",     "max_kept",
    "strict_kept",       "asked_and_got",       "declared_wait",  "no_inversion",
    "preemption_bound",  "rescues_bounded",     "one_generation", "bounded_queues",
    "sound_policy_stays"};

inline std::string_view NameOf(Rule rule) { return kRuleNames[static_cast<std::size_t>(rule)]; }

struct Violation {
  Rule rule = Rule::kOneAtATime;
  std::uint64_t step = 0;
  Time at{};
  std::string what;  // names the sessions

  std::string Text() const {
    return std::string(NameOf(rule)) + ": step " + std::to_string(step) + ", " +
           std::to_string(at.time_since_epoch().count()) + " ns: " + what;
  }
};

}  // namespace gpusched::sim
