// What each order must satisfy, and what it writes into the checker's book.
#include <algorithm>

#include "sim/checker.h"

namespace gpusched::sim {
namespace {

std::string Named(SessionId id) { return "session " + std::to_string(id.serial); }

}  // namespace

void Checker::OnAction(Time now, const core::Action& action) {
  TimePasses(now);
  std::visit([this](const auto& order) { On(order); }, action);
}

void Checker::On(const core::StartCommand& order) {
  ++commands_;
  Session* session = Find(order.session);
  if (session == nullptr) {
    Fault(Rule::kOnlyRunnableStart, Named(order.session) + " is not there and starts a command");
    return;
  }
  CheckMayStart(*session);
  BookedJob* job = JobToStart(*session, order);
  if (job == nullptr) return;

  const BookedJob::Part& part = job->parts[job->part];
  BookedFlight flight;
  flight.ticket = order.ticket;
  flight.session = session;
  flight.job = job;
  flight.part = job->part;
  flight.first = order.first;
  flight.count = order.count;
  flight.submitted = now_;
  flight.estimate = order.estimate;
  flight.priority = session->share.priority;
  flight.bound = BoundInForce(flight.priority);
  flight.one_piece = !part.cuttable || order.count == 1 || order.estimate == Duration(0);
  flight.line = LineOf(*session);
  CheckInFlight(flight);
  session->unrecorded.push_back({.generation = policy_.generation,
                                 .inverted = priorities_ && HigherCouldRun(flight.priority),
                                 .bound_setting = bound_setting_});
  flight.bound_setting = session->LargestSetting();

  flights_.push_back(flight);
  ++session->in_flight;
  ++job->in_flight;
  job->begun = true;
  job->unit = order.first + order.count;
  if (job->unit >= part.extent) {
    job->unit = 0;
    ++job->part;
  }
  if (!part.cuttable) {
    const Duration wait = std::min(2 * order.estimate, options_.limits.longest_cap_wait);
    while (!cap_waits_.empty() && cap_waits_.back().second <= wait) cap_waits_.pop_back();
    cap_waits_.emplace_back(now_, wait);
  }
  session->cap.Start(order.estimate);
  group_.Start(order.estimate);
  everybody_.Start(order.estimate);
  session->waits_since = now_;
  Moved(*session);
}

// The longest of late; for how long it counts is the core's, but not longer than this.
Duration Checker::CapWait() {
  constexpr Duration kOfLate = std::chrono::seconds(4);
  while (!cap_waits_.empty() && now_ - cap_waits_.front().first > kOfLate) cap_waits_.pop_front();
  return cap_waits_.empty() ? Duration(0) : cap_waits_.front().second;
}

void Checker::CheckMayStart(const Session& session) {
  if (session.paused) Fault(Rule::kOnlyRunnableStart, Named(session.id) + " starts while paused");
  if (session.closing) Fault(Rule::kOnlyRunnableStart, Named(session.id) + " starts once closed");
  if (lost_) {
    Fault(Rule::kOnlyRunnableStart, Named(session.id) + " starts on a device that is lost");
  }
  if (const double beyond = session.cap.SurelyBeyond(now_, CapWait()); beyond > 0) {
    Fault(Rule::kMaxKept,
          Named(session.id) + " starts at its max, " + std::to_string(beyond) + " ns beyond it");
  }
  const double beside_strict = session.share.strict ? 0 : group_.SurelyBeyond(now_, CapWait());
  if (const double beyond = std::max(beside_strict, everybody_.SurelyBeyond(now_, CapWait()));
      beyond > 0) {
    Fault(Rule::kStrictKept, Named(session.id) + " starts on what is kept for strict sessions, " +
                                 std::to_string(beyond) + " ns beyond it");
  }
  const std::int64_t line = LineOf(session);
  for (const BookedFlight& flight : flights_) {
    if (flight.line == line || (flight.line < line && flight.session != &session)) continue;
    Fault(Rule::kOneAtATime, Named(session.id) + " starts beside " + Named(flight.session->id) +
                                 ", which is above it, or itself under another priority");
    break;
  }
}

// The next range of the first job of its queue that has something to start; else nothing is booked.
BookedJob* Checker::JobToStart(Session& session, const core::StartCommand& order) {
  const std::uint32_t queue = order.job->queue;
  BookedJob* job = queue < session.queues.size() ? session.queues[queue].FirstToStart() : nullptr;
  const auto fault = [&](const std::string& what) {
    Fault(Rule::kInOrderOnce, Named(session.id) + ", queue " + std::to_string(queue) + ", job " +
                                  std::to_string(order.job->id) + ": " + what);
    return nullptr;
  };
  if (job == nullptr) return fault("nothing was left to start");
  if (job->id != order.job->id) return fault("job " + std::to_string(job->id) + " comes first");
  const std::string range = "operation " + std::to_string(order.operation) + " from " +
                            std::to_string(order.first) + ", " + std::to_string(order.count);
  if (order.operation != job->part || order.first != job->unit) {
    return fault(range + " starts; operation " + std::to_string(job->part) + " from " +
                 std::to_string(job->unit) + " is next");
  }
  const BookedJob::Part& part = job->parts[job->part];
  if (order.count == 0 || order.count > part.extent - order.first) {
    return fault(range + " is beyond its " + std::to_string(part.extent));
  }
  if (!part.cuttable && order.count != part.extent) return fault(range + " cannot be cut so");
  return job;
}

// Work in flight by estimate stays under the bound in force, and so does each piece by half.
void Checker::CheckInFlight(const BookedFlight& flight) {
  const Duration bound = std::max(flight.bound, options_.shortest_useful_chunk);
  Duration in_flight = flight.estimate;
  bool alone = true;
  for (const BookedFlight& other : flights_) {
    if (other.line != flight.line) continue;
    in_flight += other.estimate;
    alone = false;
  }
  if (!alone && in_flight > bound) {
    Fault(Rule::kPreemptionBound,
          Named(flight.session->id) + " has " + std::to_string(in_flight.count()) +
              " ns in flight beside a bound of " + std::to_string(bound.count()));
  }
  const Duration half = std::max(flight.bound / 2, options_.shortest_useful_chunk);
  if (!flight.one_piece && flight.estimate > half) {
    Fault(Rule::kPreemptionBound, Named(flight.session->id) + " starts a piece of " +
                                      std::to_string(flight.estimate.count()) +
                                      " ns, longer than half the bound of " +
                                      std::to_string(flight.bound.count()));
  }
}

void Checker::On(const core::FinishJob& order) {
  const core::Job& ended = *order.job;
  Session* session = Find(ended.session);
  BookedJob* job = session != nullptr && ended.queue < session->queues.size()
                       ? session->queues[ended.queue].Find(ended.id)
                       : nullptr;
  const std::string name = Named(ended.session) + ", job " + std::to_string(ended.id);
  if (job == nullptr) {
    Fault(Rule::kEndsOnce, name + " ends and was not there, or had ended before");
    return;
  }
  bool sound = job->in_flight == 0;
  switch (order.outcome) {
    case core::JobOutcome::kDone:
      sound = sound && job->exhausted() && !job->cancelled && !job->failed;
      break;
    case core::JobOutcome::kCancelled: sound = sound && job->cancelled; break;
    case core::JobOutcome::kSkipped:
      sound = sound && job->may_be_skipped && !job->begun && !job->cancelled;
      break;
    case core::JobOutcome::kFailed: sound = sound && job->failed && !job->cancelled; break;
  }
  if (!sound) {
    Fault(Rule::kEndsOnce,
          name + " ends with outcome " + std::to_string(static_cast<int>(order.outcome)) + ", " +
              std::to_string(job->in_flight) + " commands in flight, " +
              (job->exhausted() ? "nothing" : "something") + " left to start" +
              (job->cancelled ? ", cancelled" : "") + (job->failed ? ", failed" : ""));
  }
  for (BookedFlight& flight : flights_) {
    if (flight.job == job) return;  // said above; its book entry stays for its commands
  }
  to_end_.erase(job->id);
  auto& jobs = session->queues[ended.queue].jobs;
  jobs.erase(std::find_if(jobs.begin(), jobs.end(),
                          [&](const auto& other) { return other.get() == job; }));
  --session->jobs;
  Moved(*session);
}

void Checker::On(const core::RefuseJob& order) {
  if (to_refuse_.erase(order.job->id) == 0) {
    Fault(Rule::kRefusedForCause, Named(order.job->session) + ", job " +
                                      std::to_string(order.job->id) +
                                      " is refused: " + order.why.message());
  }
}

void Checker::On(const core::SessionGone& order) {
  Session* session = Find(order.session);
  if (session == nullptr || !session->closing || session->jobs > 0 || session->in_flight > 0) {
    Fault(Rule::kEndsOnce,
          Named(order.session) + " is gone and was not there, not closed or had jobs left");
    return;
  }
  if (!flights_.empty()) {
    const BookedFlight& first = flights_.front();
    const bool same_slice = first.session->slice_commands > 0 && device_session_ == first.session;
    meter_.Pass(same_slice ? device_end_ : std::max(first.submitted, device_end_), now_);
  }
  meter_.Close(now_, order.session.slot);
  BeginStretch();
  if (device_session_ == session) device_session_ = nullptr;
  const bool strict = session->share.strict;
  sessions_[order.session.slot].reset();
  if (strict) SetGroupRates();
}

void Checker::On(const core::RecordSlice& order) {
  const SliceReport& slice = order.slice;
  Session* session = Find(slice.session);
  if (session == nullptr || session->slice_commands == 0) {
    Fault(Rule::kChargedSums, Named(slice.session) + " has a slice recorded and ran nothing");
    return;
  }
  if (slice.commands != session->slice_commands || slice.charged != session->slice_charged ||
      slice.started != session->slice_started || slice.ended != session->slice_end) {
    Fault(Rule::kChargedSums,
          Named(slice.session) + " has a slice of " + std::to_string(slice.commands) +
              " commands recorded, charged " + std::to_string(slice.charged.count()) +
              " ns; by the device it was " + std::to_string(session->slice_commands) + " and " +
              std::to_string(session->slice_charged.count()));
  }
  if (slice.generation != session->unrecorded.front().generation) {
    Fault(Rule::kOneGeneration, Named(slice.session) + " has a slice of generation " +
                                    std::to_string(slice.generation) + " recorded; " +
                                    std::to_string(session->unrecorded.front().generation) +
                                    " was in force when it began");
  }
  // A budget is passed by half a piece at most, that is by a quarter of the bound.
  longest_slice_ = std::max(
      {longest_slice_, session->slice_charged, slice.granted + session->LargestSetting() / 4});
  for (std::uint32_t i = 0; i < session->slice_commands; ++i) {
    if (session->unrecorded.front().inverted && !slice.rescue) {
      Fault(Rule::kNoInversion,
            Named(slice.session) + " started a command while a higher session could have run");
    }
    session->unrecorded.pop_front();
  }
  session->slice_commands = 0;
  session->slice_charged = Duration(0);
  session->slice_end = Time{};
  if (slice.rescue && slice.generation == policy_.generation) CheckRescue(slice);
  CheckShares();
}

void Checker::On(const core::PolicyEjected& order) {
  if (built_in_) {
    Fault(Rule::kSoundPolicyStays, order.ejected.kind + " was ejected: " + order.why);
  }
  TakePolicy(order.now, ShareRule::kEqual);
}

}  // namespace gpusched::sim
