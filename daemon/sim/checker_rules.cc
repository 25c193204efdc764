// The rules that look at more than one fact or order: idle time, waits, shares, inversions.
#include <algorithm>
#include <cmath>

#include "sim/checker.h"

namespace gpusched::sim {
namespace {

std::string Named(SessionId id) { return "session " + std::to_string(id.serial); }

// A session's smallest target that a bound must be a part of.
constexpr int kPartOfTarget = 20;

}  // namespace

// While nothing is in flight and somebody has work, only caps hold the device back.
void Checker::TimePasses(Time now) {
  if (now == now_) return;
  if (flights_.empty() && !lost_) meter_.Pass(device_end_, now);
  now_ = now;
}

void Checker::AfterStep(Time now, const core::Scheduler& scheduler) {
  TimePasses(now);
  ++step_;
  for (const std::uint64_t job : to_refuse_) {
    Fault(Rule::kBoundedQueues, "job " + std::to_string(job) + " was taken beyond the limits");
  }
  to_refuse_.clear();
  for (const std::uint64_t job : to_end_) {
    Fault(Rule::kEndsOnce, "job " + std::to_string(job) + " has nothing left and does not end");
  }
  to_end_.clear();
  if (flights_.size() > options_.limits.commands_in_flight) {
    Fault(Rule::kBoundedQueues, std::to_string(flights_.size()) + " commands are in flight");
  }
  CheckIdle();
  CheckWaits();
  CheckAccounts(scheduler);
}

void Checker::CheckIdle() {
  if (!flights_.empty() || lost_) return;
  if (!built_in_) {
    if (witness_ == nullptr || !witness_->present()) return;
    const Decision& said = witness_->latest();
    if (said.kind == Decision::Kind::kIdle && said.ask_again > now_) return;
  }
  for (const auto& session : sessions_) {
    if (session == nullptr || !session->has_work() || !session->HasToStart()) continue;
    if (!SurelyCanRun(*session)) continue;
    Fault(Rule::kNeverIdle, "the device is idle and " + Named(session->id) + " could run");
    return;
  }
}

// By what the policy declared, once every millisecond.
void Checker::CheckWaits() {
  constexpr Duration kEvery = std::chrono::milliseconds(1);
  if (witness_ == nullptr || !witness_->present() || lost_) return;
  if (now_ - waits_checked_ < kEvery) return;
  waits_checked_ = now_;
  Duration beyond_help = longest_command_;
  if (!flights_.empty()) {
    beyond_help = std::max(beyond_help, now_ - flights_.front().submitted);
  }
  for (const auto& session : sessions_) {
    if (session == nullptr || session->waits_since == kNever || session->in_flight > 0) continue;
    if (Capped(*session)) continue;
    const Duration declared = witness_->LongestWait(session->id);
    const Duration allowed =
        Plus(declared, options_.limits.starvation_slack + bound_setting_ + 4 * beyond_help);
    const Duration waited = now_ - session->waits_since;
    if (waited <= allowed) continue;
    Fault(Rule::kDeclaredWait, Named(session->id) + " has waited for " +
                                   std::to_string(waited.count()) + " ns; " +
                                   std::to_string(declared.count()) + " were declared");
    session->waits_since = now_;  // said once
  }
}

void Checker::CheckAccounts(const core::Scheduler& scheduler) {
  for (const SessionId id : touched_) {
    const Session* session = Find(id);
    const std::optional<core::SessionStatus> status = scheduler.Find(now_, id);
    if (session == nullptr || !status) continue;
    if (status->account.charged != session->charged) {
      Fault(Rule::kChargedSums,
            Named(id) + " is charged " + std::to_string(status->account.charged.count()) +
                " ns; by the device it was " + std::to_string(session->charged.count()));
    }
    if (status->jobs_waiting + status->jobs_running != session->jobs) {
      Fault(Rule::kEndsOnce, Named(id) + " has " +
                                 std::to_string(status->jobs_waiting + status->jobs_running) +
                                 " jobs by its own count, " + std::to_string(session->jobs) +
                                 " by what came and went");
    }
  }
  touched_.clear();
}

// Over a stretch in which the same sessions share, nobody strays further than two of the longest
// slices or commands (policies/weighted_share.h), and than it takes to settle what stood open when
// the stretch began. A command that takes far longer than anyone expected comes on top. What a
// session asks while all its work is on the device already nobody can give to it, and the others
// have it: each may stray by so much more. Not where somebody has a limit: time it could not use
// under it is lost to it.
void Checker::CheckShares() {
  if (policy_.kind != "weighted_share" || options_.priority_classes > 1 || group_.limited()) return;
  for (const auto& session : sessions_) {
    if (session != nullptr && session->cap.limited()) return;
  }
  const double longest = static_cast<double>(std::max(longest_slice_, longest_command_).count());
  constexpr double kRounding = 1'000;  // ns
  // What stood open is settled to a twentieth.
  double out_of_reach = out_of_reach_;
  for (const auto& session : sessions_) {
    if (session != nullptr) out_of_reach += OutOfReach(*session);
  }
  const double bound = 2 * longest + 2.1 * furthest_ + out_of_reach + surprises_ + kRounding;
  for (std::uint32_t slot = 0; slot < lags_.size(); ++slot) {
    if (!meter_.has_work(slot) || sessions_[slot] == nullptr) continue;
    const double strayed = std::abs(meter_.Lag(slot) - lags_[slot]);
    if (strayed <= bound) continue;
    Fault(Rule::kAskedAndGot, Named(sessions_[slot]->id) + " is " + std::to_string(strayed) +
                                  " ns from what it asked; " + std::to_string(bound) +
                                  " are allowed");
    BeginStretch();
    return;
  }
}

// What it has asked since all its work is on the device.
double Checker::OutOfReach(const Session& session) const {
  if (session.helpless_since == kNever) return 0;
  return meter_.rate(session.id.slot) *
         static_cast<double>((now_ - session.helpless_since).count());
}

void Checker::BeginStretch() {
  out_of_reach_ = surprises_ = 0;
  for (const auto& session : sessions_) {
    if (session != nullptr && session->helpless_since != kNever) session->helpless_since = now_;
  }
  lags_.assign(meter_.slots(), 0);
  for (std::uint32_t slot = 0; slot < lags_.size(); ++slot) lags_[slot] = meter_.Lag(slot);
  furthest_ = meter_.FurthestFromPar();
}

// The device was made to wait for by lower sessions: each stretch of it is at most the bound that
// was in force, one rescue, and what could not be known or cut.
void Checker::CheckInversion(const Session& higher, Time served) {
  if (!priorities_ || options_.priority_classes > 1 || Capped(higher)) return;
  const Time since = higher.wants_since;
  Duration stretch{0}, beyond{0}, bound{0}, rescue{0};
  const auto judge = [&] {
    constexpr Duration kRounding{1'000};
    if (stretch > bound + rescue + beyond + kRounding) {
      Fault(Rule::kPreemptionBound, Named(higher.id) + " waited for lower sessions for " +
                                        std::to_string(stretch.count()) + " ns; bound " +
                                        std::to_string(bound.count()) + ", rescue " +
                                        std::to_string(rescue.count()) + ", beyond estimates " +
                                        std::to_string(beyond.count()));
    }
    stretch = beyond = bound = rescue = Duration(0);
  };
  for (auto it = executed_.rbegin(); it != executed_.rend() && it->ended > since; ++it) {
    if (it->started >= served) continue;
    if (it->priority >= higher.share.priority) {
      judge();
      continue;
    }
    stretch += it->ended - std::max(it->started, since);
    beyond += it->beyond;
    bound = std::max({bound, it->bound, options_.shortest_useful_chunk});
    // One bound, as it was set when the rescue began; a budget is passed by half a command at most.
    if (it->submitted >= since) rescue = std::max(rescue, it->bound_setting * 5 / 4);
  }
  judge();
}

// Rescues take the background share of any second, and one slice.
void Checker::CheckRescue(const SliceReport& slice) {
  constexpr Duration kSecond = std::chrono::seconds(1);
  rescues_.push_back(slice);
  longest_rescue_ = std::max(longest_rescue_, slice.charged);
  const Time from = slice.ended - kSecond;
  while (rescues_.front().ended <= from) rescues_.pop_front();
  Duration taken{0};
  for (const SliceReport& rescue : rescues_) {
    taken += rescue.ended - std::max(from, rescue.ended - rescue.charged);
  }
  const Duration allowed = Duration(kSecond.count() / 1'000 * background_share_ / 1'000'000) +
                           std::max(longest_rescue_, bound_setting_);
  if (taken > allowed) {
    Fault(Rule::kRescuesBounded, "rescues took " + std::to_string(taken.count()) +
                                     " ns of a second, " + std::to_string(allowed.count()) +
                                     " are allowed; the last was of " + Named(slice.session));
  }
}

Duration Checker::BoundInForce(std::int32_t priority) const {
  Duration least = bound_setting_;
  for (const auto& session : sessions_) {
    if (session == nullptr || session->share.priority <= priority) continue;
    if (session->share.latency_target <= Duration(0)) continue;
    least = std::min(least, session->share.latency_target / kPartOfTarget);
  }
  return std::max(least, options_.shortest_useful_chunk);
}

bool Checker::SurelyCanRun(const Session& session) const {
  return session.cap.SurelyFree(now_) &&
         everybody_.SurelyFree(now_, options_.limits.group_resume) &&
         (session.share.strict || group_.SurelyFree(now_, options_.limits.group_resume));
}

bool Checker::Capped(const Session& session) const {
  return session.cap.limited() || everybody_.limited() ||
         (!session.share.strict && group_.limited());
}

bool Checker::HigherCouldRun(std::int32_t priority) const {
  for (const auto& session : sessions_) {
    if (session == nullptr || session->share.priority <= priority) continue;
    if (session->has_work() && session->HasToStart() && SurelyCanRun(*session)) return true;
  }
  return false;
}

void Checker::ExpectNothingLeft(Time now) {
  TimePasses(now);
  for (const auto& session : sessions_) {
    if (session == nullptr) continue;
    Fault(Rule::kEndsOnce, Named(session->id) + " is left with " + std::to_string(session->jobs) +
                               " jobs and " + std::to_string(session->in_flight) +
                               " commands in flight");
  }
}

}  // namespace gpusched::sim
