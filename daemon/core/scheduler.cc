// The scheduler's public face.
#include "core/scheduler.h"

#include "core/core.h"

namespace gpusched::core {

Scheduler::Scheduler(const Limits& limits, const DeviceTraits& traits, PolicySpec spec,
                     std::unique_ptr<Policy> policy)
    : core_(std::make_unique<Core>(limits, traits, std::move(spec), std::move(policy))) {}
Scheduler::~Scheduler() = default;

void Scheduler::Handle(Time now, Event&& event) { core_->Handle(now, std::move(event)); }
void Scheduler::Advance(Time now, std::vector<Action>& actions) { core_->Advance(now, actions); }
Time Scheduler::NextWakeup() const { return core_->NextWakeup(); }
std::vector<SessionStatus> Scheduler::Sessions(Time now) const { return core_->Sessions(now); }
std::optional<SessionStatus> Scheduler::Find(Time now, SessionId id) const {
  return core_->Find(now, id);
}
DeviceStatus Scheduler::device() const { return core_->device(); }

}  // namespace gpusched::core
