// How each fact changes what the core knows.
#include <algorithm>

#include "core/core.h"
#include "gpusched/reasons.h"

namespace gpusched::core {

namespace {

// What is kept of a fact: its kind, whom it concerns, and a number that tells it from its like.
struct Trace {
  const char* what;
  std::uint64_t session, number;
};
Trace TraceOf(const SessionOpened& e) { return {"opened", e.session.serial, e.session.slot}; }
Trace TraceOf(const SessionChanged& e) { return {"changed", e.session.serial, 0}; }
Trace TraceOf(const SessionClosed& e) { return {"closed", e.session.serial, 0}; }
Trace TraceOf(const JobSubmitted& e) { return {"submitted", e.job->session.serial, e.job->id}; }
Trace TraceOf(const JobCancelled& e) { return {"cancelled", e.session.serial, e.job}; }
Trace TraceOf(const Paused& e) { return {"paused", e.session.serial, 0}; }
Trace TraceOf(const Resumed& e) { return {"resumed", e.session.serial, 0}; }
Trace TraceOf(const CommandFinished& e) {
  return {"finished", 0, static_cast<std::uint64_t>(e.ticket)};
}
Trace TraceOf(const DeviceLost&) { return {"device lost", 0, 0}; }
Trace TraceOf(const DeviceRestored&) { return {"device restored", 0, 0}; }
Trace TraceOf(const PolicyChanged& e) { return {"policy", 0, e.spec.generation}; }
Trace TraceOf(const SettingsChanged& e) {
  return {"bound", 0, static_cast<std::uint64_t>(e.preemption_bound.count())};
}

}  // namespace

Scheduler::Core::Core(const Limits& limits, const DeviceTraits& traits, PolicySpec spec,
                      std::unique_ptr<Policy> policy)
    : limits_(limits),
      traits_(traits),
      host_(std::move(spec), std::move(policy)),
      fluid_(limits.largest_lag, limits.carried_claim),
      bounds_(traits.preemption_bound, traits.shortest_useful_chunk),
      beside_strict_(limits.cap_burst),
      beside_idle_(limits.cap_burst),
      slices_(limits.commands_in_flight + 1) {
  fluid_.SetRule(host_.policy().share_rule());
  flights_.reserve(limits_.commands_in_flight);
  pending_.reserve(64);
  for (std::uint32_t i = static_cast<std::uint32_t>(slices_.size()); i-- > 0;) {
    free_slices_.push_back(i);
  }
}

Scheduler::Core::~Core() {
  for (const SessionId id : by_age_) {
    for (Queue& queue : sessions_[id.slot]->queues) {
      while (queue.head != nullptr) {
        const std::unique_ptr<Job> job(queue.head);
        queue.Remove(job.get());
      }
    }
  }
}

void Scheduler::Core::Handle(Time now, Event&& event) {
  GPUSCHED_CORE_CHECK(now >= now_);
  now_ = now;
  declined_ = false;
  AdvanceFluid(now);
  std::visit(
      [this](auto& fact) {
        const Trace trace = TraceOf(fact);
        records_.Add(now_, trace.what, trace.session, trace.number);
        On(fact);
      },
      event);
  ReleaseGone();
}

void Scheduler::Core::On(SessionOpened& fact) {
  const std::uint32_t slot = fact.session.slot;
  GPUSCHED_CORE_CHECK(slot < limits_.sessions);
  if (slot >= sessions_.size()) sessions_.resize(slot + 1);
  GPUSCHED_CORE_CHECK(sessions_[slot] == nullptr);
  GPUSCHED_CORE_CHECK(by_age_.empty() || by_age_.back() < fact.session);
  sessions_[slot] =
      std::make_unique<Session>(fact.session, fact.share, limits_, traits_.shortest_useful_chunk);
  Session& session = *sessions_[slot];
  by_age_.push_back(fact.session);
  cap_ends_.Reserve(slot);
  skip_at_.Reserve(slot);
  starved_at_.Reserve(slot);
  leaving_.reserve(sessions_.size());
  session.cap.SetRate(now_, fact.share.max, CapBurst());
  bounds_.Add(fact.share);
  fluid_.Add(slot, fact.share);
  if (fact.share.strict) {
    SetStrictMin(strict_min_ + fact.share.min);
    KeepFree(session, fact.share.min);
  }
  host_.policy().SessionAdded(View(session));
  TellMoved();
}

void Scheduler::Core::On(SessionChanged& fact) {
  Session* session = Lookup(fact.session);
  if (session == nullptr || session->closing) return;
  bounds_.Remove(session->share);
  Rate strict_min = strict_min_;
  if (session->share.strict) strict_min -= session->share.min;
  session->share = fact.share;
  bounds_.Add(session->share);
  if (session->share.strict) strict_min += session->share.min;
  session->cap.SetRate(now_, session->share.max, CapBurst());
  fluid_.SetShare(session->id.slot, session->share);
  host_.policy().SessionChanged(View(*session));
  session->declared_wait = Duration(-1);
  SetStrictMin(strict_min);
  Refresh(*session);
  reconsider_ = true;
}

void Scheduler::Core::On(SessionClosed& fact) {
  Session* session = Lookup(fact.session);
  if (session == nullptr || session->closing) return;
  session->closing = true;
  session->why_closed = fact.why;
  for (Queue& queue : session->queues) {
    for (Job* job = queue.head; job != nullptr;) {
      Job* const following = job->next_in_queue;
      Cancel(*session, job, fact.why);
      job = following;
    }
  }
  Refresh(*session);
  leaving_.push_back(session->id.slot);
}

std::optional<Status> Scheduler::Core::Refusal(const Job& job) const {
  const Session* session = Lookup(job.session);
  if (session == nullptr || session->closing) {
    return Status(StatusCode::kFailedPrecondition, reason::kSessionClosed,
                  "the session is closed; open another one");
  }
  if (session->jobs >= limits_.jobs_per_session) {
    return Status(StatusCode::kResourceExhausted, reason::kWindowExceeded,
                  "the session has " + std::to_string(session->jobs) +
                      " jobs outstanding, as many as it may; wait for a report first");
  }
  if (job.queue >= Session::kQueues) {
    return Status(StatusCode::kInvalidArgument, reason::kUnknownQueue,
                  "queue " + std::to_string(job.queue) + " is beyond the last, 63");
  }
  if (job.operations.empty()) {
    return Status(StatusCode::kInvalidArgument, reason::kEmptyJob, "the job has no operation");
  }
  if (job.operations.size() > limits_.operations_per_job) {
    return Status(StatusCode::kInvalidArgument, reason::kTooMany,
                  "the job has " + std::to_string(job.operations.size()) + " operations; " +
                      std::to_string(limits_.operations_per_job) + " are possible, split it");
  }
  for (const Operation& operation : job.operations) {
    if (operation.extent == 0) {
      return Status(StatusCode::kInvalidArgument, reason::kBadGrid, "an operation has no extent");
    }
  }
  return std::nullopt;
}

void Scheduler::Core::On(JobSubmitted& fact) {
  if (std::optional<Status> refusal = Refusal(*fact.job)) {
    pending_.emplace_back(RefuseJob{std::move(fact.job), *std::move(refusal)});
    return;
  }
  Session& session = *Lookup(fact.job->session);
  Job* job = fact.job.release();
  for (Operation& operation : job->operations) {
    operation.estimate = session.estimates.IndexOf(operation.estimate_key);
  }
  ++session.jobs;
  Queue& queue = session.queues[job->queue];
  queue.Append(job);
  if (queue.next == job) QueueMoved(session, job->queue);
  if (job->skip_if_late && skip_at_.Contains(session.id.slot) &&
      skip_at_.KeyOf(session.id.slot) < now_) {
    SkipLate(session);
  }
  Refresh(session);
}

void Scheduler::Core::On(JobCancelled& fact) {
  Session* session = Lookup(fact.session);
  if (session == nullptr) return;
  for (Queue& queue : session->queues) {
    for (Job* job = queue.head; job != nullptr; job = job->next_in_queue) {
      if (job->id != fact.job) continue;
      Cancel(*session, job,
             Status(StatusCode::kCancelled, reason::kCancelled, "cancelled by the client"));
      Refresh(*session);
      return;
    }
  }
}

// Waiting: it ends here. Running: nothing more of it starts, and it ends when drained.
void Scheduler::Core::Cancel(Session& session, Job* job, const Status& why) {
  if (job->cancelled) return;
  job->cancelled = true;
  if (job->error.ok()) job->error = why;
  if (job->state == Job::State::kWaiting) {
    EndJob(session, job, JobOutcome::kCancelled);
    return;
  }
  DropUnstarted(session, *job);
  for (const Flight& flight : flights_) {
    if (flight.job == job) Stop(flight);
  }
  EndJobIfDrained(session, job);
}

void Scheduler::Core::DropUnstarted(Session& session, Job& job) {
  job.next_operation = static_cast<std::uint32_t>(job.operations.size());
  job.next_unit = 0;
  job.work_left = Duration::zero();
  Queue& queue = session.queues[job.queue];
  if (queue.next != &job) return;
  queue.next = Queue::FirstToStart(job.next_in_queue);
  QueueMoved(session, job.queue);
}

void Scheduler::Core::EndJobIfDrained(Session& session, Job* job) {
  if (job->in_flight > 0 || job->next_operation < job->operations.size()) return;
  if (job->cancelled) {
    EndJob(session, job, JobOutcome::kCancelled);
  } else {
    EndJob(session, job, job->error.ok() ? JobOutcome::kDone : JobOutcome::kFailed);
  }
}

void Scheduler::Core::EndJob(Session& session, Job* job, JobOutcome outcome) {
  Queue& queue = session.queues[job->queue];
  const bool was_next = queue.next == job;
  queue.Remove(job);
  --session.jobs;
  if (job->state == Job::State::kRunning) --session.jobs_started;
  job->state = Job::State::kFinished;
  job->generation = host_.spec().generation;
  switch (outcome) {
    case JobOutcome::kDone:
      ++session.done;
      if (job->last_end > job->deadline) ++session.late;
      break;
    case JobOutcome::kCancelled: ++session.cancelled; break;
    case JobOutcome::kSkipped: ++session.skipped; break;
    case JobOutcome::kFailed: ++session.failed; break;
  }
  if (was_next) QueueMoved(session, job->queue);
  pending_.emplace_back(FinishJob{std::unique_ptr<Job>(job), outcome});
}

void Scheduler::Core::On(Paused& fact) {
  Session* session = Lookup(fact.session);
  if (session == nullptr) return;
  session->paused = true;
  Refresh(*session);
}

void Scheduler::Core::On(Resumed& fact) {
  Session* session = Lookup(fact.session);
  if (session == nullptr) return;
  session->paused = false;
  Refresh(*session);
}

void Scheduler::Core::On(CommandFinished& fact) {
  const auto at = std::find_if(flights_.begin(), flights_.end(),
                               [&](const Flight& f) { return f.ticket == fact.ticket; });
  GPUSCHED_CORE_CHECK(at != flights_.end());
  const Duration charged = ChargeOf(*at, fact.ended);
  const Flight flight = *at;
  flights_.erase(at);
  flight_time_ -= flight.at_most;
  if (flight.alone) --alone_in_flight_;
  Session& session = *sessions_[flight.session];
  Settle(session, flight, fact, charged);
  ReconcileFluid();

  Job* job = flight.job;
  --job->in_flight;
  --session.in_flight;
  switch (fact.outcome) {
    case CommandFinished::Outcome::kDone: session.spared = false; break;
    case CommandFinished::Outcome::kStopped:
      session.spared = fact.next == flight.first;
      if (!job->cancelled && job->error.ok()) Rewind(session, flight, fact.next);
      break;
    case CommandFinished::Outcome::kFailed:
    case CommandFinished::Outcome::kLost:
      if (job->error.ok()) job->error = fact.error;
      DropUnstarted(session, *job);
      break;
  }
  EndJobIfDrained(session, job);
  Slice& slice = slices_[flight.slice];
  if (slice.stopped && slice.outstanding == 0) DrainSlice(flight.slice);
  Refresh(session);
  RefreshGroups();
  if (session.closing && session.in_flight == 0) leaving_.push_back(session.id.slot);
}

// What the command kept others from: see "charged" in the glossary of daemon/README.md.
Duration Scheduler::Core::ChargeOf(Flight& flight, Time ended) {
  if (ordered()) {
    // Nobody else had any of it.
    const bool same_slice = slices_[flight.slice].serial == device_slice_;
    const Time begin = same_slice ? device_end_ : std::max(flight.submitted, device_end_);
    flight.had = std::max(Duration::zero(), ended - begin);
  } else {
    DivideSinceLastEnd(ended, &flight, [](Flight& of, Duration had) { of.had += had; });
  }
  device_end_ = std::max(device_end_, ended);
  device_slice_ = slices_[flight.slice].serial;
  return flight.had;
}

// Gives the time from the last end to `until` to those who executed: of each class the first in
// flight, or the one that `ended`; where two did at once, to the higher. What came before all of
// them belongs to the slice that had the device last, if it has it still.
template <typename Give>
void Scheduler::Core::DivideSinceLastEnd(Time until, const Flight* ended, Give give) {
  Flight* last = nullptr;
  for (std::uint32_t below = traits_.priority_classes; below > 0;) {
    Flight* first = nullptr;
    for (Flight& flight : flights_) {
      if (flight.priority_class >= below) continue;
      if (first == nullptr || flight.priority_class > first->priority_class ||
          (&flight == ended && flight.priority_class == first->priority_class)) {
        first = &flight;
      }
    }
    if (first == nullptr) break;
    below = first->priority_class;
    if (slices_[first->slice].serial == device_slice_) last = first;
    const Time begin = std::max(first->submitted, device_end_);
    if (begin >= until) continue;
    give(*first, until - begin);
    until = begin;
  }
  if (last != nullptr && until > device_end_) give(*last, until - device_end_);
}

// Books a finished command: account, cap, estimate, slice and job.
void Scheduler::Core::Settle(Session& session, const Flight& flight, const CommandFinished& fact,
                             Duration charged) {
  const Duration took = std::max(Duration::zero(), fact.ended - fact.started);
  session.charged += charged;
  session.busy += took;
  totals_.charged += charged;
  fluid_due_ += charged;
  totals_.busy += took;
  CorrectCaps(session, flight.estimate, charged);
  longest_command_ = std::max(longest_command_, took);

  Job& job = *flight.job;
  const Operation& operation = job.operations[flight.operation];
  if (fact.outcome == CommandFinished::Outcome::kDone) {
    Learn(session, flight, took, charged);
    if (!operation.cuttable)
      session.longest_uncuttable = std::max(session.longest_uncuttable, took);
  }
  job.charged += charged;
  if (job.first_start == Time{}) job.first_start = fact.started;
  job.last_end = std::max(job.last_end, fact.ended);

  Slice& slice = slices_[flight.slice];
  if (slice.report.commands++ == 0) slice.report.started = fact.started;
  slice.report.ended = std::max(slice.report.ended, fact.ended);
  slice.report.charged += charged;
  slice.used += charged - flight.estimate;
  slice.in_flight -= flight.estimate;
  --slice.outstanding;
}

// A command that was overtaken says little of its own time.
void Scheduler::Core::Learn(Session& session, const Flight& flight, Duration took,
                            Duration charged) {
  const Operation& operation = flight.job->operations[flight.operation];
  if (!ordered() && charged < took && session.estimates.Known(operation.estimate)) return;
  session.estimates.Measured(operation.estimate, operation.Whole(flight.count), took);
}

// The device stopped a command early: what it left is to be started again, first of all.
void Scheduler::Core::Rewind(Session& session, const Flight& flight, std::uint64_t next) {
  Job& job = *flight.job;
  GPUSCHED_CORE_CHECK(next >= flight.first && next <= flight.first + flight.count);
  if (next == flight.first + flight.count) return;
  const bool earlier = flight.operation < job.next_operation ||
                       (flight.operation == job.next_operation && next < job.next_unit);
  if (!earlier) return;
  job.next_operation = flight.operation;
  job.next_unit = next;
  // Jobs in front of it may have been stopped too: the first with something left comes first.
  Queue& queue = session.queues[job.queue];
  queue.next = Queue::FirstToStart(queue.head);
  QueueMoved(session, job.queue);
}

void Scheduler::Core::On(DeviceLost&) { lost_ = true; }

void Scheduler::Core::On(DeviceRestored&) {
  lost_ = false;
  device_slice_ = 0;  // what it was away for is nobody's gap
  reconsider_ = true;
}

void Scheduler::Core::On(PolicyChanged& fact) {
  ReplacePolicy(std::move(fact.spec), std::move(fact.policy));
}

void Scheduler::Core::On(SettingsChanged& fact) {
  bounds_.Set(std::clamp(fact.preemption_bound, limits_.least_preemption_bound,
                         limits_.greatest_preemption_bound));
}

// The accounts stay; the new policy learns of every session as if it had just come with its
// account.
void Scheduler::Core::ReplacePolicy(PolicySpec spec, std::unique_ptr<Policy> policy) {
  SplitSlices();
  host_.Replace(std::move(spec), std::move(policy));
  fluid_.SetRule(host_.policy().share_rule());
  for (const SessionId id : by_age_) {
    Session& session = *sessions_[id.slot];
    const SessionView view = View(session);
    host_.policy().SessionAdded(view);
    session.declared_wait = Duration(-1);
    if (!session.runnable) continue;
    host_.policy().SessionRunnable(view);
    session.patient_since = patience_;  // the new policy is not to blame for the wait so far
    SetPatience(session, view);
  }
  ask_again_ = kNever;
  reconsider_ = true;
}

// What slices in progress have had so far is charged under the old rule, the rest under the new
// one.
void Scheduler::Core::SplitSlices() {
  std::vector<Duration> had(slices_.size());
  for (const Flight& flight : flights_) had[flight.slice] += flight.had;
  DivideSinceLastEnd(now_, nullptr, [&](Flight& of, Duration time) { had[of.slice] += time; });
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    if (slices_[i].in_use) Apply(slices_[i], slices_[i].report.charged + had[i]);
  }
}

void Scheduler::Core::Eject(std::string why) {
  PolicySpec ejected = host_.spec();
  PolicySpec fallback = host_.FallbackSpec();
  ++totals_.ejections;
  pending_.emplace_back(PolicyEjected{std::move(ejected), fallback, std::move(why)});
  ReplacePolicy(std::move(fallback), PolicyHost::Fallback());
}

// Sessions that were closed and have drained.
void Scheduler::Core::ReleaseGone() {
  while (!leaving_.empty()) {
    const std::uint32_t slot = leaving_.back();
    leaving_.pop_back();
    Session* session = sessions_[slot].get();
    if (session != nullptr && session->closing && session->in_flight == 0 && session->jobs == 0) {
      Release(*session);
    }
  }
}

void Scheduler::Core::Release(Session& session) {
  const SessionId id = session.id;
  if (has_current() && current().report.session == id) StopSlice(SliceEnd::kWithdrawn);
  host_.policy().SessionRemoved(id);
  bounds_.Remove(session.share);
  const Duration legacy = fluid_.Lag(id.slot);
  fluid_.Remove(id.slot);
  if (legacy > limits_.told_legacy || -legacy > limits_.told_legacy) TellAll();
  cap_ends_.Remove(id.slot);
  skip_at_.Remove(id.slot);
  by_age_.erase(std::lower_bound(by_age_.begin(), by_age_.end(), id));
  const Rate strict_min = session.share.strict ? session.share.min : 0;
  KeepFree(session, 0);
  sessions_[id.slot].reset();
  if (strict_min > 0) SetStrictMin(strict_min_ - strict_min);
  TellMoved();
  pending_.emplace_back(SessionGone{id});
  reconsider_ = true;
}

}  // namespace gpusched::core
