// Field by field, one way.
#include <utility>  // Boost 1.74's asio forgets it under C++20.

#include "rpc/admin_wire.h"

#include <string>

#include "catalog.h"
#include "rpc/wire.h"

namespace gpusched::rpc {
namespace {

std::int64_t UnixNs(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

v1::Slice::End EndOf(SliceEnd end) {
  switch (end) {
    case SliceEnd::kExpired: return v1::Slice::EXPIRED;
    case SliceEnd::kRanDry: return v1::Slice::RAN_DRY;
    case SliceEnd::kPreempted: return v1::Slice::PREEMPTED;
    case SliceEnd::kWithdrawn: return v1::Slice::WITHDRAWN;
  }
  return v1::Slice::EXPIRED;
}

}  // namespace

void EncodePolicy(const control::PolicyRecord& from, bool file_differs, v1::Policy& to) {
  to.set_kind(from.kind);
  for (const auto& [name, value] : from.parameters) (*to.mutable_parameters())[name] = value;
  to.set_generation(from.generation);
  to.set_source(from.source);
  to.set_etag(from.etag);
  to.set_since_unix_ns(UnixNs(from.since));
  if (from.expires != std::chrono::system_clock::time_point{}) {
    to.set_expires_unix_ns(UnixNs(from.expires));
  }
  to.set_file_differs(file_differs);
  to.set_note(from.note);
  if (const PolicyKind* kind = FindPolicyKind(from.kind)) {
    for (const std::string_view field : kind->honours) to.add_honoured(std::string(field));
  }
}

void EncodeSnapshotDevice(const executor::Snapshot& from, v1::Device& to) {
  EncodeDevice(*from.device, from.index, from.preemption_bound, to);
  to.set_memory_used_bytes(from.memory_used_bytes);
  to.set_lost(from.status.lost);
  to.set_charged_ns(from.status.charged.count());
  to.set_busy_ns(from.status.busy.count());
  to.set_commands(from.status.commands);
  to.set_slices(from.status.slices);
  to.set_preemptions(from.status.preemptions);
  to.set_rescues(from.status.rescues);
  to.set_ejections(from.status.ejections);
  to.set_sessions(static_cast<std::uint32_t>(from.sessions.size()));
}

void EncodeSession(const executor::SessionSnapshot& from, const executor::Snapshot& device,
                   v1::Session& to) {
  const core::SessionStatus& status = from.status;
  to.set_id(status.session.serial);
  to.set_name(from.name);
  to.set_device(device.device->uuid);
  EncodeShare(status.share, *to.mutable_share());
  to.set_charged_ns(status.account.charged.count());
  to.set_asked_ns(device.promises_shares ? status.asked.count() : -1);
  to.set_lag_ns(status.account.lag.count());
  to.set_rate(static_cast<double>(status.account.rate) / static_cast<double>(kWholeDevice));
  to.set_busy_ns(status.busy.count());
  to.set_longest_wait_ns(status.longest_wait.count());
  to.set_longest_uncuttable_ns(status.longest_uncuttable.count());
  to.set_bound_in_force_ns(status.bound_in_force.count());
  to.set_paused(status.paused);
  to.set_at_cap(status.at_cap);
  to.set_runnable(status.runnable);
  to.set_jobs_waiting(status.jobs_waiting);
  to.set_jobs_running(status.jobs_running);
  to.set_jobs_done(status.jobs_done);
  to.set_jobs_failed(status.jobs_failed);
  to.set_jobs_cancelled(status.jobs_cancelled);
  to.set_jobs_skipped(status.jobs_skipped);
  to.set_jobs_late(status.jobs_late);
  to.set_slices(status.slices);
  to.set_preempted(status.preempted);
  to.set_rescues(status.rescues);
  to.set_commands(status.commands);
  to.set_memory_bytes(from.memory_bytes);
  to.set_memory_quota_bytes(from.memory_quota_bytes);
  to.set_opened_ns(from.opened.time_since_epoch().count());
  to.set_peer(from.peer);
}

void EncodeSlice(const executor::FedSlice& from, v1::Slice& to) {
  const SliceReport& slice = from.slice;
  to.set_device(static_cast<std::int32_t>(from.device));
  to.set_session(slice.session.serial);
  to.set_generation(slice.generation);
  to.set_started_ns(slice.started.time_since_epoch().count());
  to.set_ended_ns(slice.ended.time_since_epoch().count());
  to.set_granted_ns(slice.granted.count());
  to.set_charged_ns(slice.charged.count());
  to.set_commands(slice.commands);
  to.set_rescue(slice.rescue);
  to.set_end(EndOf(slice.end));
}

void EncodeKinds(v1::ListPolicyKindsResponse& to) {
  for (const PolicyKind* kind : PolicyCatalog()) {
    auto& row = *to.add_kinds();
    row.set_kind(std::string(kind->name));
    row.set_promise(std::string(kind->promise));
    for (const ParameterSpec& spec : kind->parameters) {
      auto& parameter = *row.add_parameters();
      parameter.set_name(std::string(spec.name));
      parameter.set_range(spec.Range());
      parameter.set_default_value(spec.Default());
      parameter.set_meaning(std::string(spec.meaning));
    }
    for (const std::string_view field : kind->honours) row.add_honoured(std::string(field));
  }
}

}  // namespace gpusched::rpc
