// What sessions share while a turn runs: the scheduler, the device, the clock reading, spare parts.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/scheduler.h"
#include "device/device.h"
#include "executor/limits.h"
#include "executor/program.h"
#include "telemetry/log.h"

namespace gpusched::executor {

class Session;

// What an executor keeps beside a job in the core.
struct Body final : core::JobBody {
  Session* session = nullptr;
  std::shared_ptr<Program> program;
  std::uint64_t template_id = 0;
  std::vector<StagingPtr> sources;  // by operation, where there are copies in
  std::vector<Piece> results;       // by operation, where there are copies out
  std::uint64_t staged_bytes = 0;
  std::uint64_t held_bytes = 0;  // of a program of its own
  Duration in_client{0};
  std::string tag;
  bool held = false;  // not in the core yet
};

// Belongs to the holder of the baton.
class Desk {
 public:
  Desk(core::Scheduler& scheduler_in, device::Device& device_in)
      : scheduler(scheduler_in), device(device_in) {}

  core::Scheduler& scheduler;
  device::Device& device;
  SessionLimits limits;
  Time now{};
  Rate min_sum = 0;  // over open sessions
  // Facts were told since the last Advance.
  bool told = false;
  // Sessions that have something to send at the end of the round.
  std::vector<Session*> unsent;
  telemetry::RateLimit refusals{"refusals"};
  // Nodes of the sessions' tables of jobs: no allocation in steady state.
  std::pmr::unsynchronized_pool_resource nodes;

  void Tell(core::Event event) {
    told = true;
    scheduler.Handle(now, std::move(event));
  }

  // Exactly one Prepared comes back, to `session` and about `resource` (null: the session itself).
  void Prepare(Session& session, ResourcePtr resource, device::Preparation preparation) {
    device.Prepare(NewTicket(session, std::move(resource)), std::move(preparation));
  }
  void CloseOnDevice(Session& session, SessionId id) {
    device.CloseSession(id, NewTicket(session, nullptr));
  }
  struct Prepared {
    Session* session = nullptr;
    ResourcePtr resource;
  };
  Prepared Claim(device::Ticket ticket) {
    auto node = preparing_.extract(static_cast<std::uint64_t>(ticket));
    return node.empty() ? Prepared{} : std::move(node.mapped());
  }

  // Jobs are made anew only until as many exist as were ever outstanding at once.
  std::unique_ptr<core::Job> NewJob();
  void Recycle(std::unique_ptr<core::Job> job);

 private:
  // Preparations and commands share the device's ticket space; the core counts up from 1.
  static constexpr std::uint64_t kPreparationBit = std::uint64_t{1} << 63;
  // Spares beyond this are freed: one session's burst is not everyone's memory.
  static constexpr std::size_t kSpareJobs = 1'024;

  device::Ticket NewTicket(Session& session, ResourcePtr resource) {
    const std::uint64_t ticket = kPreparationBit | ++last_preparation_;
    preparing_.emplace(ticket, Prepared{&session, std::move(resource)});
    return device::Ticket{ticket};
  }

  std::uint64_t last_preparation_ = 0;
  std::unordered_map<std::uint64_t, Prepared> preparing_;
  std::vector<std::unique_ptr<core::Job>> spare_;
};

}  // namespace gpusched::executor
