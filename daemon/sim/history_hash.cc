// Which numbers of each fact and order make a history: all that a driver or a core could act on.
#include "sim/history_hash.h"

#include <type_traits>
#include <variant>

namespace gpusched::sim {
namespace {

std::uint64_t Bits(Time t) { return static_cast<std::uint64_t>(t.time_since_epoch().count()); }
std::uint64_t Bits(Duration d) { return static_cast<std::uint64_t>(d.count()); }

void Mix(HistoryHash& hash, SessionId id) { hash.Mix(id.serial << 20 ^ id.slot); }
void Mix(HistoryHash& hash, const Share& share) {
  hash.Mix(static_cast<std::uint64_t>(share.weight));
  hash.Mix(static_cast<std::uint64_t>(share.min));
  hash.Mix(static_cast<std::uint64_t>(share.max));
  hash.Mix(static_cast<std::uint64_t>(share.priority) << 1 | (share.strict ? 1 : 0));
  hash.Mix(Bits(share.latency_target));
}
void Mix(HistoryHash& hash, const core::PolicySpec& spec) {
  hash.Mix(spec.kind);
  hash.Mix(spec.parameters);
  hash.Mix(spec.generation);
}

void MixFact(HistoryHash& hash, const core::SessionOpened& e) {
  Mix(hash, e.session);
  Mix(hash, e.share);
}
void MixFact(HistoryHash& hash, const core::SessionChanged& e) {
  Mix(hash, e.session);
  Mix(hash, e.share);
}
void MixFact(HistoryHash& hash, const core::SessionClosed& e) { Mix(hash, e.session); }
void MixFact(HistoryHash& hash, const core::JobSubmitted& e) {
  const core::Job& job = *e.job;
  Mix(hash, job.session);
  hash.Mix(job.id);
  hash.Mix(std::uint64_t{job.queue} << 1 | (job.skip_if_late ? 1 : 0));
  hash.Mix(Bits(job.arrived));
  hash.Mix(Bits(job.deadline));
  for (const core::Operation& operation : job.operations) {
    hash.Mix(operation.extent << 1 | (operation.cuttable ? 1 : 0));
    hash.Mix(operation.estimate_key);
  }
}
void MixFact(HistoryHash& hash, const core::JobCancelled& e) {
  Mix(hash, e.session);
  hash.Mix(e.job);
}
void MixFact(HistoryHash& hash, const core::Paused& e) { Mix(hash, e.session); }
void MixFact(HistoryHash& hash, const core::Resumed& e) { Mix(hash, e.session); }
void MixFact(HistoryHash& hash, const core::CommandFinished& e) {
  hash.Mix(static_cast<std::uint64_t>(e.ticket) << 2 | static_cast<std::uint64_t>(e.outcome));
  hash.Mix(Bits(e.started));
  hash.Mix(Bits(e.ended));
  if (e.outcome == core::CommandFinished::Outcome::kStopped) hash.Mix(e.next);
}
void MixFact(HistoryHash&, const core::DeviceLost&) {}
void MixFact(HistoryHash&, const core::DeviceRestored&) {}
void MixFact(HistoryHash& hash, const core::PolicyChanged& e) { Mix(hash, e.spec); }
void MixFact(HistoryHash& hash, const core::SettingsChanged& e) {
  hash.Mix(Bits(e.preemption_bound));
}

void MixOrder(HistoryHash& hash, const core::StartCommand& a) {
  hash.Mix(static_cast<std::uint64_t>(a.ticket));
  Mix(hash, a.session);
  hash.Mix(a.job->id << 12 ^ a.operation);
  hash.Mix(a.first);
  hash.Mix(a.count);
  hash.Mix(Bits(a.estimate));
}
void MixOrder(HistoryHash& hash, const core::Interrupt& a) {
  hash.Mix(static_cast<std::uint64_t>(a.ticket));
}
void MixOrder(HistoryHash& hash, const core::FinishJob& a) {
  hash.Mix(a.job->id << 2 | static_cast<std::uint64_t>(a.outcome));
  hash.Mix(Bits(a.job->charged));
  hash.Mix(Bits(a.job->last_end));
}
void MixOrder(HistoryHash& hash, const core::RefuseJob& a) {
  hash.Mix(a.job->id);
  hash.Mix(a.why.reason());
}
void MixOrder(HistoryHash& hash, const core::SessionGone& a) { Mix(hash, a.session); }
void MixOrder(HistoryHash& hash, const core::RecordSlice& a) {
  const SliceReport& slice = a.slice;
  Mix(hash, slice.session);
  hash.Mix(slice.generation << 3 | static_cast<std::uint64_t>(slice.end) << 1 |
           (slice.rescue ? 1 : 0));
  hash.Mix(Bits(slice.started));
  hash.Mix(Bits(slice.ended));
  hash.Mix(Bits(slice.granted));
  hash.Mix(Bits(slice.charged));
  hash.Mix(slice.commands);
}
void MixOrder(HistoryHash& hash, const core::PolicyEjected& a) {
  Mix(hash, a.ejected);
  Mix(hash, a.now);
}

}  // namespace

void HistoryHash::Add(Time now, const core::Event& event) {
  Mix(Bits(now) << 5 | event.index());
  std::visit([this](const auto& fact) { MixFact(*this, fact); }, event);
}

void HistoryHash::Add(Time now, const core::Action& action) {
  // Orders are told from facts by the fifth bit.
  Mix(Bits(now) << 5 | 16 | action.index());
  std::visit([this](const auto& order) { MixOrder(*this, order); }, action);
}

}  // namespace gpusched::sim
