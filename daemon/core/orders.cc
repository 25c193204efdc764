// Decisions and what follows from them: slices, and the commands they are made of.
#include <algorithm>

#include "core/core.h"
#include "core/priority_class.h"

namespace gpusched::core {

namespace {

// Copies of unknown speed are tried with this many bytes, and cut at multiples of a page.
constexpr std::uint64_t kProbeBytes = 256 * 1024;
constexpr std::uint64_t kPage = 4'096;

}  // namespace

void Scheduler::Core::Advance(Time now, std::vector<Action>& actions) {
  GPUSCHED_CORE_CHECK(now >= now_);
  now_ = now;
  AdvanceFluid(now);
  Tick();
  if (!lost_) Dispatch();
  ReleaseGone();
  if (actions.empty()) {
    actions.swap(pending_);
    return;
  }
  std::move(pending_.begin(), pending_.end(), std::back_inserter(actions));
  pending_.clear();
}

// Starts all that may be started now. Each round starts a command, ends a slice or leaves.
void Scheduler::Core::Dispatch() {
  for (;;) {
    // A job that only now has become the first of its queue may be late already.
    while (!skip_at_.empty() && skip_at_.top() < now_) SkipLate(*sessions_[skip_at_.top_slot()]);
    if (has_current()) {
      if (reconsider_ && !ReconsiderCurrent()) continue;
      switch (StartNext()) {
        case Step::kStarted: continue;
        case Step::kNoRoom: return;
        case Step::kExpired: StopSlice(SliceEnd::kExpired); continue;
        case Step::kRanDry: {
          const Session& session = *sessions_[current().report.session.slot];
          StopSlice(session.startable == 0 ? SliceEnd::kRanDry : SliceEnd::kWithdrawn);
          continue;
        }
      }
    }
    if (!OpenNext()) return;
  }
}

// Asks whether the current slice goes on. False: it does not.
bool Scheduler::Core::ReconsiderCurrent() {
  reconsider_ = false;
  Slice& slice = current();
  if (!sessions_[slice.report.session.slot]->runnable) return true;  // it ends by itself
  const Decision decision = Ask(CurrentSlice{.session = slice.report.session,
                                             .granted = slice.report.granted,
                                             .used = slice.used,
                                             .rescue = slice.report.rescue});
  ask_again_ = decision.ask_again;
  switch (decision.kind) {
    case Decision::Kind::kKeep: return true;
    case Decision::Kind::kRun:
      if (decision.session != slice.report.session) break;
      if (decision.rescue != slice.report.rescue) {
        // What follows is of another nature: it gets a slice of its own.
        StopSlice(SliceEnd::kExpired);
        return false;
      }
      slice.report.granted = slice.used + decision.length;
      return true;
    case Decision::Kind::kIdle: break;
  }
  StopSlice(SliceEnd::kPreempted);
  return false;
}

// Where no more than a sliver has room, the answer would most likely be forgotten.
bool Scheduler::Core::MayDecide() const {
  if (runnable_count_ == 0) return false;
  if (flights_.empty()) return true;
  if (!ordered()) return flights_.size() < limits_.commands_in_flight && !declined_;
  return flights_.size() < limits_.commands_in_flight && alone_in_flight_ == 0 &&
         flight_time_ + std::max(bounds_.setting() / 4, traits_.shortest_useful_chunk) <=
             std::max(bounds_.setting(), traits_.shortest_useful_chunk);
}

// Chooses a session and starts its first command. The answer is forgotten if that command does not
// fit beside what is in flight: by the time it does, another answer may be right.
bool Scheduler::Core::OpenNext() {
  if (!MayDecide()) return false;
  if (!starved_at_.empty() && starved_at_.top() < patience_) {
    if (std::optional<std::string> fault = Starved()) Eject(*std::move(fault));
  }
  reconsider_ = false;
  const Decision decision = Ask(std::nullopt);
  ask_again_ = decision.ask_again;
  if (decision.kind != Decision::Kind::kRun) return false;
  Session& session = *sessions_[decision.session.slot];
  const Piece piece = Cut(session, *NextJob(session), decision.length, true);
  declined_ = !Fits(session, piece);
  if (declined_) return false;
  OpenSlice(session, decision);
  Start(session, current_, piece);
  return true;
}

// An answer that may be acted on: a faulty policy is replaced and its successor asked.
Decision Scheduler::Core::Ask(const std::optional<CurrentSlice>& slice) {
  DecisionContext context;
  context.now = now_;
  context.current = slice;
  context.fluid = fluid_.Clock();
  context.preemption_bound = bounds_.setting();
  context.longest_slice = limits_.longest_slice;
  Decision decision = host_.policy().Decide(context);
  const auto facts = [&] {
    const Session* chosen =
        decision.kind == Decision::Kind::kRun ? Lookup(decision.session) : nullptr;
    return DecisionFacts{.chosen_is_runnable = chosen != nullptr && chosen->runnable,
                         .anyone_is_runnable = runnable_count_ > 0};
  };
  if (!PolicyHost::Sound(context, decision, facts())) {
    Eject(PolicyHost::Fault(context, decision, facts()));
    reconsider_ = false;
    context.fluid = fluid_.Clock();
    decision = host_.policy().Decide(context);
    GPUSCHED_CORE_CHECK(PolicyHost::Sound(context, decision, facts()));
  }
  return decision;
}

Scheduler::Core::Step Scheduler::Core::StartNext() {
  Slice& slice = current();
  Session& session = *sessions_[slice.report.session.slot];
  if (!session.runnable) return Step::kRanDry;
  const Piece piece = Cut(session, *NextJob(session), slice.report.granted - slice.used, false);
  if (piece.wait_for_next_slice) return Step::kExpired;
  if (!Fits(session, piece)) return Step::kNoRoom;
  Start(session, current_, piece);
  return Step::kStarted;
}

// The next command of a session: the whole rest of its operation where that is short or cannot be
// cut, else what fits into half the bound in force and into the budget.
Scheduler::Core::Piece Scheduler::Core::Cut(const Session& session, Job& job, Duration remaining,
                                            bool nothing_started) const {
  const Operation& operation = job.operations[job.next_operation];
  const Estimates& estimates = session.estimates;
  const std::uint64_t left = operation.extent - job.next_unit;
  const Duration half =
      std::max(bounds_.InForce(session.share.priority) / 2, traits_.shortest_useful_chunk);
  Piece piece;
  piece.job = &job;
  piece.first = job.next_unit;
  piece.count = left;
  if (!estimates.Known(operation.estimate)) {
    const std::uint64_t probe = operation.kind == Operation::Kind::kLaunch
                                    ? std::max(traits_.probe_units, operation.wave)
                                    : kProbeBytes;
    if (operation.cuttable) piece.count = std::min(left, probe);
    piece.alone = true;
    piece.wait_for_next_slice = !nothing_started && remaining <= Duration::zero();
    return piece;
  }
  piece.at_most = estimates.ExpectAtMost(operation.estimate, operation.Whole(left));
  piece.estimate = estimates.Expect(operation.estimate, operation.Whole(left));
  if (!operation.cuttable || piece.at_most <= half) {
    piece.alone = piece.at_most > half;
    piece.wait_for_next_slice = !nothing_started && piece.estimate / 2 > remaining;
    return piece;
  }
  // A sliver of a chunk costs as much to start as a whole one: what is left is owed instead.
  const Duration sliver = std::max(half / 2, traits_.shortest_useful_chunk);
  piece.wait_for_next_slice = !nothing_started && remaining < sliver;
  const Duration room = std::min(half, std::max(remaining, sliver));
  // In equal pieces of whole waves, so that none is a sliver, which costs as much to start as a
  // whole one.
  const auto waves_within = [&](Duration time) {
    const std::uint64_t units = estimates.UnitsWithin(operation.estimate, time);
    return operation.wave == 1 ? units : std::max(operation.wave, units - units % operation.wave);
  };
  const std::uint64_t pieces = (left - 1) / waves_within(half) + 1;
  piece.count = std::min({operation.Whole((left - 1) / pieces + 1), waves_within(room), left});
  if (operation.kind != Operation::Kind::kLaunch && piece.count > kPage) {
    piece.count -= piece.count % kPage;
  }
  piece.at_most = estimates.ExpectAtMost(operation.estimate, operation.Whole(piece.count));
  piece.estimate = estimates.Expect(operation.estimate, operation.Whole(piece.count));
  piece.alone = piece.at_most > half;
  return piece;
}

// In flight by time: a higher arrival waits for all that is in flight.
bool Scheduler::Core::Fits(const Session& session, const Piece& piece) const {
  if (flights_.empty()) return true;
  if (flights_.size() >= limits_.commands_in_flight) return false;
  if (free_slices_.empty()) return false;
  if (!ordered()) return FitsItsClass(session, piece);
  if (piece.alone || alone_in_flight_ > 0) return false;
  return flight_time_ + piece.at_most <=
         std::max(bounds_.InForce(session.share.priority), traits_.shortest_useful_chunk);
}

// What is in flight of lower classes is overtaken, of higher ones waited for.
bool Scheduler::Core::FitsItsClass(const Session& session, const Piece& piece) const {
  const std::uint32_t own = ClassOf(session.share.priority, traits_.priority_classes);
  Duration before{0};
  for (const Flight& flight : flights_) {
    if (flight.priority_class > own) return false;
    if (flight.priority_class < own) {
      // A session's commands keep their order also where its priority was changed.
      if (flight.session == session.id.slot) return false;
      continue;
    }
    if (piece.alone || flight.alone) return false;
    before += flight.at_most;
  }
  return before == Duration::zero() ||
         before + piece.at_most <=
             std::max(bounds_.InForce(session.share.priority), traits_.shortest_useful_chunk);
}

void Scheduler::Core::OpenSlice(Session& session, const Decision& decision) {
  current_ = free_slices_.back();
  free_slices_.pop_back();
  Slice& slice = current();
  slice = Slice{};
  slice.in_use = true;
  slice.serial = ++slice_serial_;
  slice.report.session = session.id;
  slice.report.generation = host_.spec().generation;
  slice.report.granted = decision.length;
  slice.report.rescue = decision.rescue;
  session.last_served = now_;
  session.longest_wait = std::max(session.longest_wait, now_ - session.waiting_since);
  starved_at_.Remove(session.id.slot);
  ++session.slices;
  ++totals_.slices;
  if (decision.rescue) {
    ++session.rescues;
    ++totals_.rescues;
  }
}

void Scheduler::Core::Start(Session& session, std::uint32_t slice_index, const Piece& piece) {
  declined_ = false;
  Job& job = *piece.job;
  Flight flight;
  flight.ticket = Ticket{++last_ticket_};
  flight.session = session.id.slot;
  flight.slice = slice_index;
  flight.job = &job;
  flight.operation = job.next_operation;
  flight.first = piece.first;
  flight.count = piece.count;
  flight.estimate = piece.estimate;
  flight.at_most = piece.at_most;
  flight.submitted = now_;
  flight.alone = piece.alone;
  flight.priority_class = ClassOf(session.share.priority, traits_.priority_classes);
  flights_.push_back(flight);
  flight_time_ += flight.at_most;
  if (flight.alone) ++alone_in_flight_;

  Slice& slice = slices_[slice_index];
  slice.used += piece.estimate;
  slice.in_flight += piece.estimate;
  ++slice.outstanding;
  ++session.in_flight;
  ++session.commands;
  records_.Add(now_, "start", session.id.serial, static_cast<std::uint64_t>(flight.ticket));
  ++totals_.commands;
  TakeFromCaps(session, piece.estimate);
  if (!job.operations[flight.operation].cuttable) {
    const Operation& whole = job.operations[flight.operation];
    cap_wait_.Note(
        now_, std::min(2 * session.estimates.ExpectCalmly(whole.estimate, whole.Whole(piece.count)),
                       limits_.longest_cap_wait));
  }

  if (job.state == Job::State::kWaiting) {
    job.state = Job::State::kRunning;
    ++session.jobs_started;
    if (job.skip_if_late) RefreshSkip(session);
  }
  ++job.in_flight;
  job.work_left = std::max(Duration::zero(), job.work_left - piece.estimate);
  job.next_unit += piece.count;
  if (job.next_unit == job.operations[job.next_operation].extent) {
    job.next_unit = 0;
    if (++job.next_operation == job.operations.size()) {
      session.queues[job.queue].next = Queue::FirstToStart(job.next_in_queue);
      QueueMoved(session, job.queue);
    }
  }
  pending_.emplace_back(StartCommand{.ticket = flight.ticket,
                                     .session = session.id,
                                     .job = &job,
                                     .operation = flight.operation,
                                     .first = flight.first,
                                     .count = flight.count,
                                     .estimate = flight.estimate,
                                     .priority_class = flight.priority_class});
  Refresh(session);
  RefreshGroups();
}

// The current slice starts nothing more: its account is charged what it will have cost.
void Scheduler::Core::StopSlice(SliceEnd end) {
  const std::uint32_t index = current_;
  current_ = kNone;
  Slice& slice = slices_[index];
  slice.stopped = true;
  slice.report.end = end;
  Session& session = *sessions_[slice.report.session.slot];
  if (end == SliceEnd::kPreempted) {
    ++session.preempted;
    ++totals_.preemptions;
    // Stopped again before it did anything it would be chosen again, for nothing was charged.
    for (const Flight& flight : flights_) {
      if (flight.slice == index && !session.spared) Stop(flight);
    }
  }
  const Duration charge = Apply(slice, slice.report.charged + slice.in_flight);
  if (session.waiting_since !=
      kNever) {  // it could go on, or only a cap holds it back: it waits anew
    session.waiting_since = now_;
    session.patient_since = session.held_at = patience_;
  }
  const SessionView view = View(session);
  host_.policy().Charged(view, charge);
  if (session.runnable) {
    session.told_deadline = view.deadline;
    SetPatience(session, view);
  }
  if (slice.outstanding == 0) DrainSlice(index);
}

// A hint to the device; what cannot run in parts cannot be stopped in the middle either.
void Scheduler::Core::Stop(const Flight& flight) {
  if (!traits_.can_interrupt || !flight.job->operations[flight.operation].cuttable) return;
  pending_.emplace_back(Interrupt{flight.ticket});
}

// Charges the account so that the slice has cost it `total` in all; returns what that took.
Duration Scheduler::Core::Apply(Slice& slice, Duration total) {
  const Duration charge = total - slice.applied;
  slice.applied = total;
  const std::uint32_t slot = slice.report.session.slot;
  fluid_.Charge(slot, charge);
  sessions_[slot]->lag_ahead += charge;
  return charge;
}

void Scheduler::Core::DrainSlice(std::uint32_t index) {
  Slice& slice = slices_[index];
  Session& session = *sessions_[slice.report.session.slot];
  const Duration difference = Apply(slice, slice.report.charged);
  if (difference != Duration::zero()) host_.policy().Charged(View(session), difference);
  host_.policy().SliceEnded(slice.report);
  pending_.emplace_back(RecordSlice{slice.report});
  slice.in_use = false;
  free_slices_.push_back(index);
}

}  // namespace gpusched::core
