// What operators ask and order of an executor, answered by the holder of its baton.
#include <utility>  // Boost 1.74's asio forgets it under C++20.

#include "executor/executor.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace gpusched::executor {

void Executor::Ask(std::function<void()> question) {
  // Only this control thread and the holder meet here, for the length of one answer.
  struct Answered {
    std::mutex mutex;
    std::condition_variable condition;
    bool yes = false;
  } answered;
  Bring(Request{[&] {
    question();
    const std::lock_guard lock(answered.mutex);
    answered.yes = true;
    answered.condition.notify_one();
  }});
  std::unique_lock lock(answered.mutex);
  answered.condition.wait(lock, [&] { return answered.yes; });
}

Snapshot Executor::TakeSnapshot() {
  Snapshot snapshot;
  snapshot.index = options_.index;
  snapshot.device = &device_->info();
  Ask([&] {
    snapshot.now = desk_.now;
    snapshot.status = scheduler_.device();
    snapshot.preemption_bound = preemption_bound_;
    snapshot.promises_shares = promises_shares_;
    for (core::SessionStatus& status : scheduler_.Sessions(desk_.now)) {
      const Session& session = *sessions_[status.session.slot];
      status.jobs_waiting += session.held_jobs();
      snapshot.memory_used_bytes += session.memory_used();
      snapshot.sessions.push_back({.status = std::move(status),
                                   .name = session.name(),
                                   .peer = session.peer(),
                                   .memory_bytes = session.memory_used(),
                                   .memory_quota_bytes = session.quota(),
                                   .opened = session.opened()});
    }
  });
  return snapshot;
}

std::vector<ModuleSnapshot> Executor::Modules() {
  std::vector<ModuleSnapshot> modules;
  Ask([&] {
    for (const auto& session : sessions_) {
      if (session == nullptr) continue;
      for (const auto& [id, module] : session->modules()) {
        modules.push_back({session->id(), session->name(), id, module->info.kernels});
      }
    }
  });
  return modules;
}

void Executor::SetLimits(const SessionLimits& limits) {
  Ask([&] { desk_.limits = limits; });
}

void Executor::SetPreemptionBound(Duration bound) {
  Ask([&] {
    preemption_bound_ = bound;
    desk_.Tell(core::SettingsChanged{bound});
  });
}

void Executor::ChangePolicy(core::PolicySpec spec, std::unique_ptr<Policy> policy) {
  Bring(core::PolicyChanged{std::move(spec), std::move(policy)});
}

bool Executor::Pause(std::uint64_t session, bool paused) {
  bool found = false;
  Ask([&] {
    Session* const at = Find(session);
    found = at != nullptr;
    if (found) at->Pause(paused);
  });
  return found;
}

bool Executor::Kill(std::uint64_t session, const Status& why) {
  bool found = false;
  Ask([&] {
    Session* const at = Find(session);
    found = at != nullptr;
    if (!found) return;
    at->Close(why);
    CountWork(*at);
  });
  return found;
}

void Executor::Watch(std::shared_ptr<SliceFeed> feed) {
  Ask([&] { feeds_.push_back(std::move(feed)); });
}

void Executor::Unwatch(const std::shared_ptr<SliceFeed>& feed) {
  Ask([&] { std::erase(feeds_, feed); });
}

void Executor::Drain(const Status& why) {
  Ask([&] {
    draining_ = why;
    for (const auto& session : sessions_) {
      if (session != nullptr) session->Finish(why);
    }
  });
}

void Executor::CloseAll(const Status& why) {
  Ask([&] {
    draining_ = why;
    for (const auto& session : sessions_) {
      if (session == nullptr) continue;
      session->Close(why);
      CountWork(*session);
    }
  });
}

}  // namespace gpusched::executor
