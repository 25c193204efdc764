// What each fact writes into the checker's book.
#include <algorithm>
#include <map>
#include <utility>

#include "sim/checker.h"

namespace gpusched::sim {
namespace {

// "background_share=5%" in a policy's canonical parameters, in parts per billion.
Rate BackgroundShareOf(const std::string& parameters) {
  constexpr std::string_view kKey = "background_share=";
  const std::size_t at = parameters.find(kKey);
  if (at == std::string::npos) return kWholeDevice / 20;
  const std::string text = parameters.substr(at + kKey.size());
  std::size_t used = 0;
  const double value = std::stod(text, &used);
  const bool percent = used < text.size() && text[used] == '%';
  return static_cast<Rate>(value * static_cast<double>(kWholeDevice) / (percent ? 100 : 1));
}

}  // namespace

Checker::Checker(const CheckerOptions& options)
    : options_(options),
      witness_(options.witness),
      bound_setting_(options.preemption_bound),
      group_(options.limits.cap_burst, options.limits.cap_burst, Time{}),
      everybody_(options.limits.cap_burst, options.limits.idle_burst, Time{}) {
  TakePolicy(options.policy, options.share_rule);
}

void Checker::OnEvent(Time now, const core::Event& event) {
  TimePasses(now);
  std::visit([this](const auto& fact) { On(fact); }, event);
}

void Checker::On(const core::SessionOpened& fact) {
  const std::uint32_t slot = fact.session.slot;
  if (slot >= sessions_.size()) sessions_.resize(slot + 1);
  sessions_[slot] = std::make_unique<Session>(fact, options_.limits, now_);
  sessions_[slot]->cap.SetRate(now_, fact.share.max);
  meter_.Open(now_, slot, fact.share);
  if (fact.share.strict) {
    SetGroupRates();
    BeginStretch();
  }
}

void Checker::On(const core::SessionChanged& fact) {
  Session* session = Find(fact.session);
  if (session == nullptr || session->closing) return;
  session->share = fact.share;
  session->cap.SetRate(now_, fact.share.max);
  SetGroupRates();
  meter_.Change(now_, fact.session.slot, fact.share);
  BeginStretch();
  if (session->waits_since != kNever) session->waits_since = now_;
  if (session->wants_since != kNever) session->wants_since = now_;
}

void Checker::On(const core::SessionClosed& fact) {
  Session* session = Find(fact.session);
  if (session == nullptr || session->closing) return;
  session->closing = true;
  for (BookedQueue& queue : session->queues) {
    for (const auto& job : queue.jobs) Cancel(*session, *job);
  }
  Moved(*session);
}

bool Checker::MustRefuse(const core::Job& job) const {
  const Session* session = Find(job.session);
  const core::Limits& limits = options_.limits;
  return session == nullptr || session->closing || session->jobs >= limits.jobs_per_session ||
         job.queue >= limits.queues_per_session || job.operations.empty() ||
         job.operations.size() > limits.operations_per_job ||
         std::any_of(job.operations.begin(), job.operations.end(),
                     [](const core::Operation& operation) { return operation.extent == 0; });
}

void Checker::On(const core::JobSubmitted& fact) {
  const core::Job& job = *fact.job;
  if (MustRefuse(job)) {
    to_refuse_.insert(job.id);
    return;
  }
  Session& session = *Find(job.session);
  if (job.queue >= session.queues.size()) session.queues.resize(job.queue + 1);
  auto booked = std::make_unique<BookedJob>();
  booked->id = job.id;
  booked->may_be_skipped = job.skip_if_late && job.deadline != kNever;
  for (const core::Operation& operation : job.operations) {
    booked->parts.push_back({operation.extent, operation.cuttable});
  }
  session.queues[job.queue].jobs.push_back(std::move(booked));
  ++session.jobs;
  Moved(session);
}

void Checker::On(const core::JobCancelled& fact) {
  Session* session = Find(fact.session);
  if (session == nullptr) return;
  for (BookedQueue& queue : session->queues) {
    BookedJob* job = queue.Find(fact.job);
    if (job == nullptr) continue;
    Cancel(*session, *job);
    Moved(*session);
    return;
  }
}

void Checker::Cancel(Session&, BookedJob& job) {
  job.cancelled = true;
  job.Exhaust();
  if (job.in_flight == 0) to_end_.insert(job.id);
}

void Checker::On(const core::Paused& fact) {
  Session* session = Find(fact.session);
  if (session == nullptr) return;
  session->paused = true;
  Moved(*session);
}

void Checker::On(const core::Resumed& fact) {
  Session* session = Find(fact.session);
  if (session == nullptr) return;
  session->paused = false;
  Moved(*session);
}

void Checker::On(const core::CommandFinished& fact) {
  const auto at = std::find_if(flights_.begin(), flights_.end(),
                               [&](const BookedFlight& f) { return f.ticket == fact.ticket; });
  if (at == flights_.end()) return;
  const bool in_turn =
      std::none_of(flights_.begin(), at, [&](const auto& other) { return other.line == at->line; });
  const Duration charged = Charge(*at, fact);
  BookedFlight flight = *at;
  flights_.erase(at);
  Session& session = *flight.session;
  Time& line_end = line_ends_[flight.line];
  const bool beside = fact.started < std::exchange(line_end, std::max(line_end, fact.ended));
  if (!in_turn || beside) {
    Fault(Rule::kOneAtATime, "a command of session " + std::to_string(session.id.serial) +
                                 " executed beside one of another, or out of turn");
  }
  Settle(flight, fact, charged);

  BookedJob& job = *flight.job;
  --job.in_flight;
  --session.in_flight;
  using Outcome = core::CommandFinished::Outcome;
  switch (fact.outcome) {
    case Outcome::kDone: break;
    case Outcome::kStopped:
      if (!job.cancelled && !job.failed && fact.next < flight.first + flight.count &&
          (flight.part < job.part || (flight.part == job.part && fact.next < job.unit))) {
        job.part = flight.part;
        job.unit = fact.next;
      }
      break;
    case Outcome::kFailed:
    case Outcome::kLost:
      job.failed = true;
      job.Exhaust();
      break;
  }
  if (job.in_flight == 0 && job.exhausted()) to_end_.insert(job.id);
  if (session.wants_since != kNever) {
    CheckInversion(session, fact.started);
    session.wants_since = fact.ended;
  }
  Moved(session);
}

// By the glossary: from the end of the command before if that was the same slice's, else from its
// submission or the end of the command before, whichever is later, to its end; of what lines have
// beside each other, it is the highest's. A command is the first of its slice if every earlier one
// of its session stands in a recorded slice.
Duration Checker::Charge(BookedFlight& over, const core::CommandFinished& fact) {
  std::map<std::int64_t, BookedFlight*> heads;  // by line
  for (BookedFlight& flight : flights_) heads.try_emplace(flight.line, &flight);
  heads[over.line] = &over;
  Time from_here = fact.ended;  // all after it is some higher line's
  BookedFlight* goes_on = nullptr;
  for (auto head = heads.rbegin(); head != heads.rend(); ++head) {
    BookedFlight& flight = *head->second;
    if (flight.session->slice_commands > 0 && device_session_ == flight.session) goes_on = &flight;
    const Time begin = std::max(flight.submitted, device_end_);
    if (begin >= from_here) continue;
    flight.owes += from_here - begin;
    from_here = begin;
  }
  if (goes_on != nullptr && device_end_ < from_here) {
    goes_on->owes += from_here - device_end_;
    from_here = device_end_;
  }
  if (from_here < fact.ended) meter_.Pass(from_here, fact.ended);
  meter_.Charge(over.session->id.slot, over.owes);
  device_end_ = std::max(device_end_, fact.ended);
  device_session_ = over.session;
  return over.owes;
}

// One beyond the outermost priorities that have a line of their own shares it.
std::int64_t Checker::LineOf(const Session& session) const {
  const std::int64_t above = options_.priority_classes / 2,
                     below = (options_.priority_classes - 1) / 2;
  return std::clamp<std::int64_t>(session.share.priority, -below, above);
}

void Checker::Settle(const BookedFlight& flight, const core::CommandFinished& fact,
                     Duration charged) {
  Session& session = *flight.session;
  const Duration took = std::max(Duration(0), fact.ended - fact.started);
  longest_command_ = std::max(longest_command_, took);
  // More than noise, and than a slice of the default length.
  constexpr Duration kSurprise = std::chrono::milliseconds(1);
  if (took > 2 * flight.estimate + kSurprise) surprises_ += static_cast<double>(took.count());
  session.charged += charged;
  const Duration wait = CapWait();
  session.cap.End(now_, flight.submitted, fact.ended, flight.estimate, charged, wait);
  group_.End(now_, flight.submitted, fact.ended, flight.estimate, charged, wait,
             !session.share.strict);
  everybody_.End(now_, flight.submitted, fact.ended, flight.estimate, charged, wait);
  if (session.slice_commands++ == 0) session.slice_started = fact.started;
  session.slice_end = std::max(session.slice_end, fact.ended);
  session.slice_charged += charged;
  touched_.push_back(session.id);

  constexpr std::size_t kRemembered = 4'096;
  if (!priorities_) return;
  executed_.push_back(
      {.submitted = flight.submitted,
       .started = fact.started,
       .ended = fact.ended,
       .priority = flight.priority,
       .bound = flight.bound,
       .bound_setting = flight.bound_setting,
       .beyond = flight.one_piece ? took : std::max(Duration(0), took - flight.estimate)});
  if (executed_.size() > kRemembered) executed_.pop_front();
}

void Checker::On(const core::DeviceLost&) {
  lost_ = true;
  BeginStretch();
}

void Checker::On(const core::DeviceRestored&) {
  lost_ = false;
  device_session_ = nullptr;  // no slice goes on over what it was away for
  BeginStretch();
  for (const auto& session : sessions_) {
    if (session == nullptr) continue;
    if (session->waits_since != kNever) session->waits_since = now_;
    if (session->wants_since != kNever) session->wants_since = now_;
  }
}

void Checker::On(const core::PolicyChanged& fact) {
  TakePolicy(fact.spec, fact.policy->share_rule());
}

void Checker::TakePolicy(const core::PolicySpec& spec, ShareRule rule) {
  policy_ = spec;
  priorities_ = spec.kind == "preemptive_priority";
  built_in_ = priorities_ || spec.kind == "round_robin" || spec.kind == "weighted_share";
  if (priorities_) background_share_ = BackgroundShareOf(spec.parameters);
  rescues_.clear();
  executed_.clear();
  longest_rescue_ = Duration(0);
  meter_.SetRule(now_, rule);
  BeginStretch();
  for (const auto& session : sessions_) {
    if (session == nullptr) continue;
    if (session->waits_since != kNever) session->waits_since = now_;
    if (session->wants_since != kNever) session->wants_since = now_;
  }
}

void Checker::On(const core::SettingsChanged& fact) {
  bound_setting_ = std::clamp(fact.preemption_bound, options_.limits.least_preemption_bound,
                              options_.limits.greatest_preemption_bound);
}

// Since when it waits, and whether it shares in the device.
void Checker::Moved(Session& session) {
  const bool has_work = session.has_work();
  if (meter_.has_work(session.id.slot) != has_work) {
    meter_.SetWork(now_, session.id.slot, has_work);
    if (session.share.strict) SetGroupRates();
    BeginStretch();
  }
  const bool to_start = has_work && session.HasToStart();
  const bool helpless = has_work && !to_start;
  if (helpless != (session.helpless_since != kNever)) {
    out_of_reach_ += OutOfReach(session);
    session.helpless_since = helpless ? now_ : kNever;
  }
  if (!to_start) session.waits_since = kNever;
  if (to_start && session.waits_since == kNever) session.waits_since = now_;
  if (!to_start && session.in_flight == 0) session.wants_since = kNever;
  if (to_start && session.wants_since == kNever) session.wants_since = now_;
}

void Checker::SetGroupRates() {
  Rate strict_min = 0, kept_free = 0;
  for (const auto& session : sessions_) {
    if (session == nullptr || !session->share.strict) continue;
    strict_min += session->share.min;
    if (!session->has_work()) kept_free += session->share.min;
  }
  if (strict_min != strict_min_) group_.SetRate(now_, kWholeDevice - strict_min);
  if (kept_free != kept_free_) everybody_.SetRate(now_, kWholeDevice - kept_free);
  if (strict_min != strict_min_ || kept_free != kept_free_) {
    // Whoever was held back by the limit that was wants the device from now on.
    for (const auto& session : sessions_) {
      if (session != nullptr && session->wants_since != kNever) session->wants_since = now_;
    }
  }
  strict_min_ = strict_min;
  kept_free_ = kept_free;
}

Checker::Session* Checker::Find(SessionId id) const {
  if (id.slot >= sessions_.size() || sessions_[id.slot] == nullptr) return nullptr;
  return sessions_[id.slot]->id == id ? sessions_[id.slot].get() : nullptr;
}

void Checker::Fault(Rule rule, std::string what) {
  constexpr std::size_t kEnough = 64;
  if (violations_.size() < kEnough) violations_.push_back({rule, step_, now_, std::move(what)});
}

}  // namespace gpusched::sim
