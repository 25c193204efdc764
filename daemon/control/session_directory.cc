// Places sessions by load and finds them by id or name.
#include <utility>  // Boost 1.74's asio forgets it under C++20.

#include "control/session_directory.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

#include "executor/admission.h"
#include "gpusched/reasons.h"
#include "gpusched/units.h"
#include "telemetry/log.h"

namespace gpusched::control {
namespace {

std::optional<std::uint64_t> AsNumber(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::uint64_t FreeMemory(const executor::Executor& executor) {
  const std::uint64_t all = executor.device_info().memory_bytes;
  return all - std::min(all, executor.load().memory_bytes.load(std::memory_order_relaxed));
}

}  // namespace

SessionDirectory::SessionDirectory(std::vector<executor::Executor*> executors,
                                   executor::SessionLimits limits)
    : executors_(std::move(executors)), limits_(limits) {}

Result<executor::Executor*> SessionDirectory::Place(executor::Hello& hello) {
  const std::lock_guard lock(mutex_);
  std::uint32_t sessions = 0;
  for (const executor::Executor* executor : executors_) sessions += executor->load().sessions;
  if (sessions >= limits_.max_sessions) {
    return Status(StatusCode::kResourceExhausted, reason::kTooMany,
                  "the daemon has " + std::to_string(sessions) +
                      " sessions, as many as sessions.max_sessions allows; close one first");
  }
  const Result<std::uint64_t> memory = executor::AdmitMemory(hello.memory_bytes, limits_);
  if (!memory.ok()) return memory.status();
  Result<executor::Executor*> chosen = Choose(hello.device, *memory);
  if (!chosen.ok()) return chosen;
  hello.memory_bytes = *memory;
  (*chosen)->Reserve(*memory);
  return chosen;
}

Result<executor::Executor*> SessionDirectory::Choose(const std::string& device,
                                                     std::uint64_t memory) const {
  if (!device.empty() && device != "auto") return Named(device);
  executor::Executor* best = nullptr;
  const auto rank = [](const executor::Executor& executor) {
    const executor::Load& load = executor.load();
    return std::tuple(load.with_work.load(), load.sessions.load(), ~FreeMemory(executor));
  };
  for (executor::Executor* candidate : executors_) {
    if (FreeMemory(*candidate) < memory) continue;
    if (best == nullptr || rank(*candidate) < rank(*best)) best = candidate;
  }
  if (best != nullptr) return best;
  std::uint64_t most = 0;
  for (const executor::Executor* executor : executors_)
    most = std::max(most, FreeMemory(*executor));
  return Status(StatusCode::kResourceExhausted, reason::kDeviceMemory,
                "no device has " + FormatBytes(memory) + " left to promise; the most is " +
                    FormatBytes(most));
}

Result<executor::Executor*> SessionDirectory::Named(const std::string& device) const {
  for (executor::Executor* executor : executors_) {
    if (executor->device_info().uuid == device) return executor;
  }
  if (const auto index = AsNumber(device); index && *index < executors_.size()) {
    return executors_[*index];
  }
  std::string known;
  for (const executor::Executor* executor : executors_) {
    known += (known.empty() ? "" : ", ") + std::to_string(executor->index()) + " = " +
             executor->device_info().uuid;
  }
  return Status(StatusCode::kNotFound, reason::kUnknownDevice,
                "no device '" + device + "'; there are " + known + ", and auto");
}

std::vector<executor::Snapshot> SessionDirectory::Snapshots() const {
  std::vector<executor::Snapshot> snapshots;
  for (executor::Executor* executor : executors_) snapshots.push_back(executor->TakeSnapshot());
  return snapshots;
}

std::vector<executor::ModuleSnapshot> SessionDirectory::Modules() const {
  std::vector<executor::ModuleSnapshot> modules;
  for (executor::Executor* executor : executors_) {
    for (executor::ModuleSnapshot& module : executor->Modules())
      modules.push_back(std::move(module));
  }
  return modules;
}

Result<SessionDirectory::Found> SessionDirectory::Find(const std::string& selector) const {
  // A client may call itself 7, or id:7: the latter is an id whatever names there are. Ids are read
  // as they are written: 07 is nobody's.
  constexpr std::string_view kIdPrefix = "id:";
  const bool only_id = selector.starts_with(kIdPrefix);
  const std::string number = only_id ? selector.substr(kIdPrefix.size()) : selector;
  std::optional<std::uint64_t> id = AsNumber(number);
  if (id && std::to_string(*id) != number) id.reset();
  std::vector<Found> matches;
  std::string known;
  std::size_t listed = 0;
  for (const executor::Snapshot& snapshot : Snapshots()) {
    for (const executor::SessionSnapshot& session : snapshot.sessions) {
      Found found{executors_[snapshot.index], session.status.session.serial, session.name};
      if (listed++ < executor::kNamesInMessage) {
        known +=
            (known.empty() ? "" : ", ") + std::to_string(found.session) + " '" + found.name + "'";
      }
      if (only_id && found.session == id) return found;
      if (session.name == selector || found.session == id) matches.push_back(std::move(found));
    }
  }
  if (matches.size() == 1) return matches.front();
  if (matches.empty()) {
    return Status(StatusCode::kNotFound, reason::kUnknownSession,
                  "no session '" + selector + "'; there " +
                      (known.empty() ? "are none" : "are " + known) +
                      (listed > executor::kNamesInMessage ? ", ..." : ""));
  }
  std::string ids;
  for (std::size_t i = 0; i < std::min(matches.size(), executor::kNamesInMessage); ++i) {
    ids += (ids.empty() ? "id:" : ", id:") + std::to_string(matches[i].session);
  }
  if (matches.size() > executor::kNamesInMessage) ids += ", ...";
  return Status(StatusCode::kFailedPrecondition, reason::kAmbiguousName,
                std::to_string(matches.size()) + " sessions are named '" + selector +
                    (id ? "' or have this id" : "'") + "; choose one by its id: " + ids);
}

Result<SessionDirectory::Found> SessionDirectory::Pause(const std::string& selector, bool paused,
                                                        const std::string& who) {
  Result<Found> found = Find(selector);
  if (!found.ok()) return found;
  found->executor->Pause(found->session, paused);
  telemetry::Info("session " + std::to_string(found->session) + " '" + found->name +
                  (paused ? "' paused by " : "' resumed by ") + who);
  return found;
}

Result<SessionDirectory::Found> SessionDirectory::Kill(const std::string& selector,
                                                       const std::string& who) {
  Result<Found> found = Find(selector);
  if (!found.ok()) return found;
  found->executor->Kill(found->session, Status(StatusCode::kAborted, reason::kKilled,
                                               "the session was ended by " + who));
  return found;
}

void SessionDirectory::SetLimits(const executor::SessionLimits& limits) {
  {
    const std::lock_guard lock(mutex_);
    limits_ = limits;
  }
  for (executor::Executor* executor : executors_) executor->SetLimits(limits);
}

}  // namespace gpusched::control
