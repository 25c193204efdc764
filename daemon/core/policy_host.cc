// What an answer must satisfy, and what takes over where one does not.
#include "core/policy_host.h"

#include "catalog.h"

namespace gpusched::core {

std::string PolicyHost::Fault(const DecisionContext& context, const Decision& decision,
                              const DecisionFacts& facts) {
  if (decision.ask_again <= context.now) return "wanted to be asked again at once";
  switch (decision.kind) {
    case Decision::Kind::kKeep: return "answered Keep with no slice to keep";
    case Decision::Kind::kRun:
      if (!facts.chosen_is_runnable) {
        return "chose session " + std::to_string(decision.session.serial) + ", which cannot run";
      }
      return "granted a slice of " + std::to_string(decision.length.count()) + " ns; 1 to " +
             std::to_string(context.longest_slice.count()) + " are possible";
    case Decision::Kind::kIdle:
      return "left the device idle with work waiting and did not say until when";
  }
  return "answered with an unknown kind of decision";
}

std::unique_ptr<Policy> PolicyHost::Fallback() { return FallbackPolicy(); }

PolicySpec PolicyHost::FallbackSpec() const {
  return {.kind = "round_robin",
          .parameters = FallbackParameters(),
          .generation = spec_.generation + 1,
          .source = "ejected " + spec_.kind};
}

}  // namespace gpusched::core
