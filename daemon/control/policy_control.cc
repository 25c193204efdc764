// Applies, remembers and takes back policies.
#include <utility>  // Boost 1.74's asio forgets it under C++20.

#include "control/policy_control.h"

#include <boost/asio/post.hpp>
#include <cinttypes>
#include <cstdio>

#include "executor/clock.h"
#include "gpusched/reasons.h"
#include "telemetry/log.h"

namespace gpusched::control {
namespace {

std::string Described(const PolicyRecord& record) {
  return record.kind + (record.canonical.empty() ? "" : "(" + record.canonical + ")") +
         ", generation " + std::to_string(record.generation);
}

PolicyRecord RecordOf(const BuiltPolicy& built) {
  PolicyRecord record;
  record.kind = built.kind->name;
  record.parameters = built.parameters;
  record.canonical = built.canonical;
  return record;
}

PolicyFault FaultOf(const std::string& kind, const BuiltPolicy& built) {
  std::string message = "policy " + kind + ": ";
  for (const FieldError& error : built.errors) {
    if (&error != &built.errors.front()) message += "; ";
    message += (error.field.empty() ? "" : error.field + ": ") + error.message;
  }
  const bool unknown = built.kind == nullptr;
  return {Status(unknown ? StatusCode::kNotFound : StatusCode::kInvalidArgument,
                 unknown ? reason::kUnknownPolicy : reason::kBadParameter, message),
          built.errors};
}

PolicyAnswer<PolicyRecord> Refused(Status status) { return {{}, {std::move(status), {}}}; }

}  // namespace

PolicyControl::PolicyControl(PolicyRecord first, boost::asio::io_context& events)
    : events_(events),
      boot_(static_cast<std::uint64_t>(executor::Now().time_since_epoch().count())) {
  first.generation = 1;
  Remember(std::move(first));
}

void PolicyControl::Remember(PolicyRecord record) {
  char etag[48];
  std::snprintf(etag, sizeof etag, "%" PRIx64 "-%" PRIu64, boot_, record.generation);
  record.etag = etag;
  record.since = executor::WallClock();
  history_.push_back(std::move(record));
  if (history_.size() > kHistory) history_.pop_front();
}

PolicyAnswer<PolicyRecord> PolicyControl::Validate(const std::string& kind,
                                                   const ParameterText& parameters) {
  const BuiltPolicy built = BuildPolicy(kind, parameters);
  if (!built.ok()) return {{}, FaultOf(kind, built)};
  return {RecordOf(built), {}};
}

PolicyAnswer<PolicyRecord> PolicyControl::Apply(const PolicyChange& change) {
  const std::lock_guard lock(mutex_);
  const PolicyRecord before = history_.back();
  if (!change.etag.empty() && change.etag != before.etag) {
    return Refused(Status(StatusCode::kAborted, reason::kEtagMismatch,
                          "the policy changed since it was read: it is " + Described(before) +
                              " by " + before.source + "; read it again"));
  }
  if (change.lasts < Duration::zero() || change.lasts > kLongestFor) {
    return Refused(Status(StatusCode::kInvalidArgument, reason::kBadParameter,
                          "a change may last up to 30 days; leave it out for one that stays"));
  }
  ParameterText parameters = change.parameters;
  const std::string kind = change.kind.empty() ? before.kind : change.kind;
  if (change.kind.empty()) parameters.insert(before.parameters.begin(), before.parameters.end());
  BuiltPolicy built = BuildPolicy(kind, parameters);
  if (!built.ok()) return {{}, FaultOf(kind, built)};
  const bool keeps_term = change.kind.empty() && change.lasts == Duration::zero();
  Term term = keeps_term ? term_ : Term{};
  if (change.lasts > Duration::zero()) {
    const auto lasts =
        std::chrono::duration_cast<std::chrono::system_clock::duration>(change.lasts);
    term = {executor::Now() + change.lasts, executor::WallClock() + lasts};
    beneath_.push_back({before, term_});
    // What ends before this one does is never gone back to.
    std::erase_if(beneath_, [&](const Beneath& at) { return at.term.ends <= term.ends; });
    if (beneath_.size() > kHistory) beneath_.erase(beneath_.begin() + 1);
  } else if (!keeps_term) {
    beneath_.clear();
  }
  Install(std::move(built), change.source, "", before.generation + 1);
  SetTerm(term);
  return {history_.back(), {}};
}

// One instance per executor, each replaced between two of its decisions.
PolicyRecord PolicyControl::Install(BuiltPolicy built, const std::string& source,
                                    const std::string& note, std::uint64_t generation) {
  const PolicyRecord before = history_.back();
  PolicyRecord record = RecordOf(built);
  record.generation = generation;
  record.source = source;
  record.note = note;
  const core::PolicySpec spec{record.kind, record.canonical, generation, source};
  std::unique_ptr<Policy> next = std::move(built.policy);
  for (executor::Executor* executor : executors_) {
    if (next == nullptr) next = BuildPolicy(record.kind, record.parameters).policy;
    executor->ChangePolicy(spec, std::move(next));
  }
  telemetry::Info("policy changed by " + source + ": from " + Described(before) + " to " +
                  Described(record) + (note.empty() ? "" : " (" + note + ")"));
  Remember(std::move(record));
  return history_.back();
}

void PolicyControl::SetTerm(const Term& term) {
  term_ = term;
  history_.back().expires = term.shown;
  boost::asio::post(events_, [this, ends = term.ends] {
    expiry_.reset();
    if (ends == kNever) return;
    expiry_ = std::make_shared<boost::asio::steady_timer>(events_);
    expiry_->expires_after(ends - executor::Now());
    expiry_->async_wait([this, ends](const boost::system::error_code& error) {
      if (!error) Expire(ends);
    });
  });
}

void PolicyControl::Expire(Time ends) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || term_.ends != ends) return;  // replaced meanwhile
  const Beneath back = std::move(beneath_.back());
  beneath_.pop_back();
  Install(BuildPolicy(back.record.kind, back.record.canonical),
          "expiry, back to generation " + std::to_string(back.record.generation), "",
          history_.back().generation + 1);
  SetTerm(back.term);
}

PolicyAnswer<PolicyRecord> PolicyControl::RollBack(std::uint64_t generation,
                                                   const std::string& source) {
  const std::lock_guard lock(mutex_);
  const PolicyRecord* target = nullptr;
  if (generation == 0 && history_.size() > 1) target = &history_[history_.size() - 2];
  for (const PolicyRecord& record : history_) {
    if (generation != 0 && record.generation == generation) target = &record;
  }
  if (target == nullptr) {
    return Refused(Status(StatusCode::kNotFound, reason::kUnknownGeneration,
                          generation == 0
                              ? "there is no policy before the one in force"
                              : "no generation " + std::to_string(generation) +
                                    " in the history; it goes from " +
                                    std::to_string(history_.front().generation) + " to " +
                                    std::to_string(history_.back().generation)));
  }
  const std::uint64_t back_to = target->generation;
  Install(BuildPolicy(target->kind, target->parameters),
          source + ", roll-back to " + std::to_string(back_to), "", history_.back().generation + 1);
  beneath_.clear();
  SetTerm({});
  return {history_.back(), {}};
}

PolicyRecord PolicyControl::current() const {
  const std::lock_guard lock(mutex_);
  return history_.back();
}

std::vector<PolicyRecord> PolicyControl::History() const {
  const std::lock_guard lock(mutex_);
  return {history_.rbegin(), history_.rend()};
}

void PolicyControl::RememberFile(const std::string& kind, const std::string& canonical) {
  const std::lock_guard lock(mutex_);
  file_kind_ = kind;
  file_canonical_ = canonical;
}

bool PolicyControl::FileDiffers(const PolicyRecord& record) const {
  const std::lock_guard lock(mutex_);
  return !file_kind_.empty() && (record.kind != file_kind_ || record.canonical != file_canonical_);
}

void PolicyControl::Ejected(std::uint32_t device, const core::PolicyEjected& ejected) {
  const std::lock_guard lock(mutex_);
  telemetry::Error("policy " + ejected.ejected.kind + ", generation " +
                   std::to_string(ejected.ejected.generation) + ", ejected on device " +
                   std::to_string(device) + ": " + ejected.why);
  const PolicyRecord current = history_.back();
  if (current.generation == ejected.ejected.generation) {
    // The device has its round robin already; the others follow under the same generation.
    Install(BuildPolicy(ejected.now.kind, ejected.now.parameters), "ejected",
            "ejected: " + current.kind + ": " + ejected.why, ejected.now.generation);
  } else if (current.generation <= ejected.now.generation) {
    // A change crossed the ejection, which used up its generation on that device.
    Install(BuildPolicy(current.kind, current.parameters), current.source,
            "applied again: an ejection came between", ejected.now.generation + 1);
  } else {
    return;
  }
  SetTerm(term_);  // what was to end still does
}

void PolicyControl::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
}

}  // namespace gpusched::control
