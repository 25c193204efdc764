// Plays the client and the device to a scheduler, one completion at a time.
#include "micro/decision_workload.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "catalog.h"

namespace gpusched::bench {
namespace {

using std::chrono::microseconds;

// Short enough that two are in flight under the default bound, long enough that none is tiny.
constexpr Duration kLaunch = microseconds(400);
constexpr std::uint64_t kBlocks = 40;

// Each session another: equal ones would tie and hide what an order costs. Targets lie around the
// time a round of all sessions takes, so that some deadlines can be kept and others not. One
// priority, so that all sessions take part under every policy.
Share ShareOf(std::uint32_t index, std::uint32_t sessions) {
  const Duration round = kLaunch * static_cast<std::int64_t>(sessions);
  Share share;
  share.weight = static_cast<std::int32_t>(1 + index * 37 % 1'000);
  share.latency_target = round / 2 + round * static_cast<std::int64_t>(index * 13 % 100) / 100;
  return share;
}

std::unique_ptr<core::Job> NewJob(SessionId session) {
  auto job = std::make_unique<core::Job>();
  job->session = session;
  job->operations.push_back({.kind = core::Operation::Kind::kLaunch,
                             .cuttable = true,
                             .extent = kBlocks,
                             .estimate_key = 1});
  return job;
}

// As it was before it was submitted; its memory is kept.
void Renew(core::Job& job) {
  job.state = core::Job::State::kWaiting;
  job.cancelled = false;
  job.next_operation = 0;
  job.next_unit = 0;
  job.in_flight = 0;
  job.first_start = job.last_end = Time{};
  job.charged = job.work_left = Duration::zero();
  job.error = Status::Ok();
  job.queued_up = job.tried = false;
  job.next_in_queue = job.previous_in_queue = nullptr;
}

}  // namespace

DecisionWorkload::DecisionWorkload(const std::string& policy, std::uint32_t sessions)
    : sessions_(sessions) {
  actions_.reserve(kRing);
  ended_.reserve(kRing);
  BuiltPolicy built = BuildPolicy(policy, ParameterText{});
  scheduler_ = std::make_unique<core::Scheduler>(
      core::Limits{}, core::DeviceTraits{},
      core::PolicySpec{
          .kind = policy, .parameters = built.canonical, .generation = 1, .source = "bench"},
      std::move(built.policy));
  for (std::uint32_t i = 0; i < sessions; ++i) {
    const SessionId id{.slot = i, .serial = i + 1};
    scheduler_->Handle(now_, core::SessionOpened{.session = id, .share = ShareOf(i, sessions)});
    Submit(NewJob(id));
  }
  Advance();
}

void DecisionWorkload::Submit(std::unique_ptr<core::Job> job) {
  job->id = ++last_job_;
  job->arrived = job->received = now_;
  job->deadline = now_ + ShareOf(job->session.slot, sessions_).latency_target;
  scheduler_->Handle(now_, core::JobSubmitted{std::move(job)});
}

void DecisionWorkload::Complete() {
  if (in_flight_count_ == 0) return;
  const Started started = in_flight_[first_ % kRing];
  ++first_;
  --in_flight_count_;
  const Time start = std::max(started.submitted, device_free_);
  const Time end = start + started.length;
  device_free_ = end;
  now_ = std::max(now_, end);
  scheduler_->Handle(
      now_,
      core::CommandFinished{.ticket = started.ticket, .started = start, .ended = end, .error = {}});
  // A driver hands in everything that has come before it asks for orders; here that is the next
  // job of the session whose job ended one turn ago.
  while (!ended_.empty()) {
    std::unique_ptr<core::Job> job = std::move(ended_.back());
    ended_.pop_back();
    Submit(std::move(job));
  }
  Advance();
}

void DecisionWorkload::Advance() {
  actions_.clear();
  scheduler_->Advance(now_, actions_);
  for (core::Action& action : actions_) {
    if (auto* start = std::get_if<core::StartCommand>(&action)) {
      in_flight_[(first_ + in_flight_count_++) % kRing] = {
          .ticket = start->ticket,
          .submitted = now_,
          .length = kLaunch * static_cast<std::int64_t>(start->count) / kBlocks};
    } else if (auto* finish = std::get_if<core::FinishJob>(&action)) {
      ++jobs_done_;
      Renew(*finish->job);
      ended_.push_back(std::move(finish->job));
    } else if (std::holds_alternative<core::PolicyEjected>(action)) {
      ++ejections_;
    }
  }
}

bool DecisionWorkload::sound() const { return ejections_ == 0 && in_flight_count_ > 0; }

}  // namespace gpusched::bench
