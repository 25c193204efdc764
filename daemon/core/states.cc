// Run states: who can run, since when, what the policy is told of it, and how fluid time passes.
#include <algorithm>

#include "core/core.h"

namespace gpusched::core {

namespace {

// A step of time, or a command, beyond this (and twice the longest command) is a stall of the
// process or the device, not a policy's doing.
constexpr Duration kStall = std::chrono::milliseconds(100);

bool CanBeOnTime(const Job& job, Time now) {
  return job.deadline == kNever || After(now, job.work_left) <= job.deadline;
}

bool MayBeSkipped(const Job& job) {
  return job.skip_if_late && !job.tried && job.state == Job::State::kWaiting;
}

// So many jobs are skipped for their estimate alone before one is run to see: were it wrong for
// once, by a stall of the host, none would ever run again.
constexpr std::uint32_t kGivenUpBeforeTry = 8;

// The order of a session's queues by their first jobs.
bool ComesBefore(const Job& a, const Job& b, Time now) {
  const bool a_on_time = CanBeOnTime(a, now), b_on_time = CanBeOnTime(b, now);
  if (a_on_time != b_on_time) return a_on_time;
  if (a_on_time && a.deadline != b.deadline) return a.deadline < b.deadline;
  return a.arrived < b.arrived;
}

}  // namespace

Session* Scheduler::Core::Lookup(SessionId id) const {
  if (id.slot >= sessions_.size()) return nullptr;
  Session* session = sessions_[id.slot].get();
  return session != nullptr && session->id == id ? session : nullptr;
}

Job* Scheduler::Core::NextJob(const Session& session) const {
  Job* best = nullptr;
  for (std::uint64_t left = session.startable; left != 0; left &= left - 1) {
    Job* job = session.queues[static_cast<std::size_t>(std::countr_zero(left))].next;
    if (best == nullptr || ComesBefore(*job, *best, now_)) best = job;
  }
  return best;
}

// The first job of a queue with something to start is another one now.
void Scheduler::Core::QueueMoved(Session& session, std::uint32_t index) {
  Job* job = session.queues[index].next;
  const std::uint64_t bit = std::uint64_t{1} << index;
  if (job == nullptr) {
    session.startable &= ~bit;
  } else {
    session.startable |= bit;
    if (!job->queued_up) {
      job->queued_up = true;
      job->work_left = Duration::zero();
      for (const Operation& operation : job->operations) {
        job->work_left +=
            session.estimates.ExpectCalmly(operation.estimate, operation.Whole(operation.extent));
      }
    }
  }
  if (skip_at_.Contains(session.id.slot) || (job != nullptr && job->skip_if_late)) {
    RefreshSkip(session);
  }
}

void Scheduler::Core::RefreshSkip(Session& session) {
  Time earliest = kNever;
  for (std::uint64_t left = session.startable; left != 0; left &= left - 1) {
    const Job* job = session.queues[static_cast<std::size_t>(std::countr_zero(left))].next;
    if (!MayBeSkipped(*job) || job->deadline == kNever) continue;
    earliest = std::min(earliest, job->deadline - job->work_left);
  }
  if (earliest == kNever) {
    skip_at_.Remove(session.id.slot);
  } else {
    skip_at_.Set(session.id.slot, earliest);
  }
}

bool Scheduler::Core::GroupsLet(const Session& session) const {
  return !beside_idle_.reached() && (session.share.strict || !beside_strict_.reached());
}

bool Scheduler::Core::CanRun(const Session& session) const {
  return session.startable != 0 && !session.paused && !session.closing && !session.cap.Empty() &&
         GroupsLet(session);
}

void Scheduler::Core::Refresh(Session& session) {
  KeepFree(session, session.share.strict && !session.has_work() ? session.share.min : 0);
  // One that was just freed from its limit may still stand among those at theirs.
  if (session.cap.limited() || cap_ends_.Contains(session.id.slot)) RefreshCap(session);
  fluid_.SetActive(session.id.slot, session.has_work());
  const bool can_run = CanRun(session);
  if (can_run != session.runnable) {
    SetRunnable(session, can_run);
  } else if (can_run) {
    const Time deadline = NextJob(session)->deadline;
    if (deadline != session.told_deadline) {
      session.told_deadline = deadline;
      host_.policy().SessionChanged(View(session));
      reconsider_ = true;
    }
  }
  const bool held_by_cap = session.startable != 0 && !session.paused && !session.closing;
  if (!session.runnable && !held_by_cap) session.waiting_since = kNever;
  if (!fluid_.moved().empty()) TellMoved();
}

void Scheduler::Core::SetRunnable(Session& session, bool runnable) {
  session.runnable = runnable;
  fluid_.SetRunnable(session.id.slot, runnable);
  if (!runnable) {
    --runnable_count_;
    session.held_at = patience_;
    starved_at_.Remove(session.id.slot);
    host_.policy().SessionIdle(session.id);
    return;
  }
  ++runnable_count_;
  if (session.waiting_since == kNever) {
    session.waiting_since = now_;
    session.patient_since = patience_;
  } else {
    // A cap let it go: it has waited all the while, but that while was not the policy's doing.
    session.patient_since += patience_ - session.held_at;
  }
  const SessionView view = View(session);
  session.told_deadline = view.deadline;
  host_.policy().SessionRunnable(view);
  SetPatience(session, view);
  reconsider_ = true;
}

// The policy is asked again only when what it said last has passed: a wait it declares may have
// grown.
void Scheduler::Core::SetPatience(Session& session, const SessionView& view) {
  if (session.declared_wait < Duration::zero()) {
    session.declared_wait = host_.policy().LongestWait(view);
  }
  if (session.declared_wait == kForever) {
    starved_at_.Remove(session.id.slot);
  } else {
    starved_at_.Set(session.id.slot, After(session.patient_since,
                                           Plus(session.declared_wait, limits_.starvation_slack)));
  }
}

// Names the fault if someone has waited longer than the policy declared.
std::optional<std::string> Scheduler::Core::Starved() {
  while (!starved_at_.empty() && starved_at_.top() < patience_) {
    Session& session = *sessions_[starved_at_.top_slot()];
    session.declared_wait = host_.policy().LongestWait(View(session));
    const Duration allowed =
        Plus(session.declared_wait, limits_.starvation_slack + 2 * longest_command_);
    if (After(session.patient_since, allowed) < patience_) {
      return "let session " + std::to_string(session.id.serial) + " wait for " +
             std::to_string((patience_ - session.patient_since).count()) + " ns and had declared " +
             std::to_string(session.declared_wait.count());
    }
    if (allowed == kForever) {
      starved_at_.Remove(session.id.slot);
    } else {
      starved_at_.Set(session.id.slot, After(session.patient_since, allowed));
    }
  }
  return std::nullopt;
}

void Scheduler::Core::TellMoved() {
  for (const std::uint32_t slot : fluid_.moved()) {
    const Session* session = sessions_[slot].get();
    if (session != nullptr && session->runnable) host_.policy().SessionChanged(View(*session));
  }
  fluid_.moved().clear();
}

void Scheduler::Core::TellAll() {
  for (const SessionId id : by_age_) {
    const Session& session = *sessions_[id.slot];
    if (session.runnable) host_.policy().SessionChanged(View(session));
  }
}

SessionView Scheduler::Core::View(const Session& session) const {
  SessionView view;
  view.id = session.id;
  view.share = session.share;
  fluid_.Describe(session.id.slot, view.account);
  view.account.charged = session.charged;
  view.account.last_served = session.last_served;
  view.waiting_since = session.waiting_since;
  if (const Job* job = NextJob(session)) {
    view.deadline = job->deadline;
    view.estimated_work = job->work_left;
    view.next_command = NextCommand(session, *job);
  }
  return view;
}

Duration Scheduler::Core::NextCommand(const Session& session, const Job& job) const {
  const Operation& operation = job.operations[job.next_operation];
  const Duration rest = session.estimates.Expect(operation.estimate,
                                                 operation.Whole(operation.extent - job.next_unit));
  return operation.cuttable ? std::min(rest, bounds_.InForce(session.share.priority) / 2) : rest;
}

void Scheduler::Core::RefreshCap(Session& session) {
  FillCap(session);
  if (session.startable != 0 && session.cap.Empty() && !session.closing) {
    cap_ends_.Set(session.id.slot, session.cap.FullAgain(Duration(1)));
  } else {
    cap_ends_.Remove(session.id.slot);
  }
}

// Where shares are promised, only what a session is owed is saved up: with more it would run ahead
// of them as soon as the others rest. Account and cap are charged a slice's estimates and
// corrections at different times: compared as they stand, each estimate that was too long would
// cost it tokens.
void Scheduler::Core::FillCap(Session& session) {
  if (session.cap.limited()) {
    session.cap.LimitTo(host_.policy().share_rule() == ShareRule::kNone
                            ? CapBurst()
                            : std::clamp(fluid_.Owed(session.id.slot) + session.lag_ahead,
                                         limits_.least_cap_burst, CapBurst()));
  }
  session.cap.Fill(now_);
}

void Scheduler::Core::TakeFromCaps(Session& session, Duration expected) {
  FillCap(session);
  session.cap.Take(expected);
  session.lag_ahead -= expected;
  if (!session.share.strict) beside_strict_.Take(now_, expected);
  beside_idle_.Take(now_, expected);
}

void Scheduler::Core::CorrectCaps(Session& session, Duration expected, Duration busy) {
  const Duration beyond = busy - expected;
  FillCap(session);
  session.cap.TakeLate(beyond, busy);
  session.lag_ahead -= beyond;
  if (session.share.strict) {
    beside_strict_.WaitedFor(now_, busy);
  } else {
    beside_strict_.TakeLate(now_, beyond, busy);
  }
  beside_idle_.TakeLate(now_, beyond, busy);
}

// Commands in one piece add to it what they add to every burst.
Duration Scheduler::Core::IdleBurst() {
  return host_.policy().share_rule() == ShareRule::kNone ? CapBurst()
                                                         : limits_.idle_burst + cap_wait_.At(now_);
}

void Scheduler::Core::SetStrictMin(Rate sum) {
  strict_min_ = sum;
  beside_strict_.SetRate(now_, kWholeDevice - sum, CapBurst());
  RefreshGroups();
}

// What the min of a strict session without work keeps from everybody.
void Scheduler::Core::KeepFree(Session& session, Rate kept) {
  if (kept == session.kept_free) return;
  kept_free_ += kept - session.kept_free;
  session.kept_free = kept;
  beside_idle_.SetRate(now_, kWholeDevice - kept_free_, IdleBurst());
  RefreshGroups();
}

void Scheduler::Core::RefreshGroups() {
  const auto moved = [this](GroupCap& group, Duration burst) {
    return !group.idle() && group.Refresh(now_, burst, limits_.group_resume);
  };
  const bool beside_strict = moved(beside_strict_, CapBurst());
  const bool beside_idle = moved(beside_idle_, IdleBurst());
  if (beside_strict || beside_idle) RefreshAll();
}

void Scheduler::Core::RefreshAll() {
  for (const SessionId id : by_age_) Refresh(*sessions_[id.slot]);
}

// What executes takes far longer than anything before it: no policy can help that.
bool Scheduler::Core::DeviceStalls(Time now) const {
  return !flights_.empty() &&
         now - std::max(flights_.front().submitted, device_end_) > kStall + 2 * longest_command_;
}

// Fluid time passes while a command executes and while only caps keep the device idle; not while it
// stands idle with someone runnable. What executes when is known exactly only afterwards: until
// then whatever is in flight counts as executing, and ReconcileFluid puts it right.
void Scheduler::Core::AdvanceFluid(Time now) {
  const Duration step = now - fluid_at_;
  if (step == Duration::zero()) return;
  if (!lost_ && !DeviceStalls(now)) patience_ += std::min(step, kStall + 2 * longest_command_);
  fluid_at_ = now;
  if (flights_.empty()) {
    if (!OnlyCapsHoldBack()) return;
    fluid_due_ += step;
  }
  fluid_time_ += step;
  fluid_.Advance(step);
}

// After a command was charged: fluid time is what was charged, plus what the command now executing
// has had so far.
void Scheduler::Core::ReconcileFluid() {
  if (flights_.empty() && OnlyCapsHoldBack()) {
    fluid_due_ += std::max(Duration::zero(), now_ - device_end_);
  }
  const Duration missing = fluid_due_ + Executing() - fluid_time_;
  if (missing == Duration::zero()) return;
  fluid_time_ += missing;
  fluid_.Advance(missing);
}

Duration Scheduler::Core::Executing() const {
  if (flights_.empty()) return Duration::zero();
  Duration had{0};
  Time since = std::max(flights_.front().submitted, device_end_);  // the earliest there is
  for (const Flight& flight : flights_) {
    had += flight.had;
    if (slices_[flight.slice].serial == device_slice_) since = device_end_;
    if (ordered()) break;  // the others wait
  }
  return had + std::max(Duration::zero(), now_ - since);
}

void Scheduler::Core::Tick() {
  while (!cap_ends_.empty() && cap_ends_.top() <= now_) {
    Refresh(*sessions_[cap_ends_.top_slot()]);
  }
  RefreshGroups();
  if (ask_again_ <= now_) {
    ask_again_ = kNever;
    declined_ = false;
    reconsider_ = true;
  }
}

void Scheduler::Core::SkipLate(Session& session) {
  for (std::uint64_t left = session.startable; left != 0; left &= left - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(left));
    for (Job* job = session.queues[index].next;
         job != nullptr && MayBeSkipped(*job) && !CanBeOnTime(*job, now_);
         job = session.queues[index].next) {
      // A job that is skipped for what it is expected to take measures nothing.
      if (!CanBeOnTime(*job, job->received) && ++session.given_up == kGivenUpBeforeTry) {
        session.given_up = 0;
        job->tried = true;
        break;
      }
      EndJob(session, job, JobOutcome::kSkipped);
    }
  }
  RefreshSkip(session);
  Refresh(session);
}

Time Scheduler::Core::NextWakeup() const {
  Time next = ask_again_;
  if (!cap_ends_.empty()) next = std::min(next, cap_ends_.top());
  for (const GroupCap* group : {&beside_strict_, &beside_idle_}) {
    if (group->reached()) next = std::min(next, group->EndsAt(limits_.group_resume));
  }
  // One past: a job may still start at the last instant at which it can be on time.
  if (!skip_at_.empty()) next = std::min(next, After(skip_at_.top(), Duration(1)));
  return next;
}

SessionStatus Scheduler::Core::StatusOf(const Session& session) const {
  SessionStatus status;
  status.session = session.id;
  status.share = session.share;
  fluid_.Describe(session.id.slot, status.account);
  status.account.charged = session.charged;
  status.account.last_served = session.last_served;
  status.asked = fluid_.Asked(session.id.slot);
  status.busy = session.busy;
  status.longest_wait = session.longest_wait;
  if (session.waiting_since != kNever) {
    status.longest_wait = std::max(status.longest_wait, now_ - session.waiting_since);
  }
  status.longest_uncuttable = session.longest_uncuttable;
  status.paused = session.paused;
  status.at_cap = session.startable != 0 && (session.cap.Empty() || !GroupsLet(session));
  status.runnable = session.runnable;
  status.jobs_running = session.jobs_started;
  status.jobs_waiting = session.jobs - session.jobs_started;
  status.jobs_done = session.done;
  status.jobs_failed = session.failed;
  status.jobs_cancelled = session.cancelled;
  status.jobs_skipped = session.skipped;
  status.jobs_late = session.late;
  status.slices = session.slices;
  status.preempted = session.preempted;
  status.rescues = session.rescues;
  status.commands = session.commands;
  status.bound_in_force = bounds_.InForce(session.share.priority);
  return status;
}

std::vector<SessionStatus> Scheduler::Core::Sessions(Time) const {
  std::vector<SessionStatus> all;
  all.reserve(by_age_.size());
  for (const SessionId id : by_age_) all.push_back(StatusOf(*sessions_[id.slot]));
  return all;
}

std::optional<SessionStatus> Scheduler::Core::Find(Time, SessionId id) const {
  const Session* session = Lookup(id);
  if (session == nullptr) return std::nullopt;
  return StatusOf(*session);
}

DeviceStatus Scheduler::Core::device() const {
  DeviceStatus status = totals_;
  status.in_flight = static_cast<std::uint32_t>(flights_.size());
  status.lost = lost_;
  status.policy = host_.spec();
  status.promises_shares = host_.policy().share_rule() != ShareRule::kNone;
  return status;
}

}  // namespace gpusched::core
