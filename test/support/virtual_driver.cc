// An event queue, a timeline and the scheduler between them.
#include "support/virtual_driver.h"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "catalog.h"

namespace gpusched::testing {

struct VirtualDriver::Body : core::JobBody {
  Work work;
};

namespace {

std::unique_ptr<Policy> Build(const std::string& kind, const std::string& parameters) {
  BuiltPolicy built = BuildPolicy(kind, std::string_view(parameters));
  if (!built.ok()) throw std::invalid_argument(kind + ": " + built.errors.front().message);
  return std::move(built.policy);
}

core::PolicySpec Spec(const std::string& kind, const std::string& parameters,
                      std::uint64_t generation) {
  return {.kind = kind, .parameters = parameters, .generation = generation, .source = "test"};
}

}  // namespace

VirtualDriver::VirtualDriver(Options options)
    : VirtualDriver(options, Build(options.policy, options.parameters)) {}

VirtualDriver::VirtualDriver(Options options, std::unique_ptr<Policy> policy)
    : options_(std::move(options)),
      timelines_(options_.traits.priority_classes,
                 device::Timeline(device::CostModel(options_.costs))) {
  scheduler_ = std::make_unique<core::Scheduler>(
      options_.limits, options_.traits, Spec(options_.policy, options_.parameters, generation_),
      std::move(policy));
}
VirtualDriver::~VirtualDriver() = default;

void VirtualDriver::Feed(core::Event event) {
  scheduler_->Handle(now_, std::move(event));
  Turn();
}

SessionId VirtualDriver::Open(const Share& share) {
  const SessionId id = ids_.Take();
  Feed(core::SessionOpened{id, share});
  return id;
}
void VirtualDriver::Close(SessionId id) {
  sources_.erase(id);
  Feed(core::SessionClosed{id, Status(StatusCode::kCancelled, "SESSION_CLOSED", "closed")});
}
void VirtualDriver::Change(SessionId id, const Share& share) {
  Feed(core::SessionChanged{id, share});
}
void VirtualDriver::Pause(SessionId id) { Feed(core::Paused{id}); }
void VirtualDriver::Resume(SessionId id) { Feed(core::Resumed{id}); }

std::uint64_t VirtualDriver::Submit(SessionId id, const Work& work, std::uint32_t queue,
                                    Duration deadline_in, bool skip_if_late) {
  auto job = std::make_unique<core::Job>();
  job->session = id;
  job->id = next_job_++;
  job->queue = queue;
  job->arrived = job->received = now_;
  job->deadline = gpusched::After(now_, deadline_in);
  job->skip_if_late = skip_if_late;
  auto body = std::make_unique<Body>();
  body->work = work;
  job->body = std::move(body);
  const std::uint64_t key = static_cast<std::uint64_t>(work.per_block.count()) * 2 + work.cuttable;
  job->operations.resize(
      work.launches,
      {.cuttable = work.cuttable, .extent = work.blocks, .wave = work.wave, .estimate_key = key});
  const std::uint64_t number = job->id;
  ++outstanding_;
  Feed(core::JobSubmitted{std::move(job)});
  return number;
}
void VirtualDriver::Cancel(SessionId id, std::uint64_t job) { Feed(core::JobCancelled{id, job}); }

void VirtualDriver::SetPolicy(const std::string& kind, const std::string& parameters) {
  Feed(core::PolicyChanged{Spec(kind, parameters, ++generation_), Build(kind, parameters)});
}
void VirtualDriver::SetPolicy(std::unique_ptr<Policy> policy) {
  Feed(core::PolicyChanged{Spec("test", "", ++generation_), std::move(policy)});
}

void VirtualDriver::LoseDevice() {
  ++device_epoch_;
  const auto lost = std::move(in_flight_);
  in_flight_.clear();
  const Status why(StatusCode::kUnavailable, "DEVICE_LOST", "lost");
  scheduler_->Handle(now_, core::DeviceLost{why});
  for (const auto& [ticket, command] : lost) {
    Feed(core::CommandFinished{.ticket = core::Ticket{ticket},
                               .outcome = core::CommandFinished::Outcome::kLost,
                               .started = std::min(command.started, now_),
                               .ended = std::min(command.ended, now_),
                               .error = why});
  }
}
void VirtualDriver::RestoreDevice() { Feed(core::DeviceRestored{}); }

void VirtualDriver::KeepBusy(SessionId id, const Work& work, int outstanding) {
  sources_[id] = {work, outstanding};
  for (int i = 0; i < outstanding; ++i) Submit(id, work);
}
void VirtualDriver::StopWork(SessionId id) { sources_.erase(id); }

void VirtualDriver::After(Duration delay, std::function<void()> what) {
  happenings_.push({now_ + delay, order_++, std::move(what)});
}

void VirtualDriver::Periodic(SessionId id, const Work& work, Duration period, Duration phase,
                             Duration deadline_in) {
  sources_[id] = {work, 0};
  After(phase, [this, id, work, period, deadline_in] {
    if (!sources_.contains(id)) return;
    Submit(id, work, 0, deadline_in);
    Periodic(id, work, period, period, deadline_in);
  });
}

void VirtualDriver::RunFor(Duration duration) {
  const Time end = now_ + duration;
  for (;;) {
    const Time happening = happenings_.empty() ? kNever : happenings_.top().at;
    const Time wakeup = std::max(now_, scheduler_->NextWakeup());
    const Time next = std::min(happening, wakeup);
    if (next > end) break;
    now_ = next;
    if (happening <= wakeup) {
      const auto what = happenings_.top().what;
      happenings_.pop();
      what();
    } else {
      Turn();
    }
  }
  now_ = end;
}

void VirtualDriver::RunUntilIdle() {
  while (outstanding_ > 0 && !(happenings_.empty() && scheduler_->NextWakeup() == kNever)) {
    RunFor(std::chrono::milliseconds(1));
  }
}

void VirtualDriver::Turn() {
  std::vector<core::Action> actions;
  scheduler_->Advance(now_, actions);
  for (core::Action& action : actions) {
    std::visit(
        [this](auto& order) {
          using Order = std::decay_t<decltype(order)>;
          if constexpr (std::is_same_v<Order, core::StartCommand>) {
            Execute(order);
          } else if constexpr (std::is_same_v<Order, core::FinishJob>) {
            Finish(order);
          } else if constexpr (std::is_same_v<Order, core::RefuseJob>) {
            ++refused_;
            --outstanding_;
          } else if constexpr (std::is_same_v<Order, core::SessionGone>) {
            ++gone_;
            ids_.Release(order.session);
          } else if constexpr (std::is_same_v<Order, core::RecordSlice>) {
            slices_.push_back(order.slice);
          } else if constexpr (std::is_same_v<Order, core::PolicyEjected>) {
            generation_ = order.now.generation;
            ejections_.push_back(order);
          }
        },
        action);
  }
}

void VirtualDriver::Execute(const core::StartCommand& order) {
  const Work& work = static_cast<const Body&>(*order.job->body).work;
  const device::Asked asked{
      .session = order.session,
      .work = work.times * work.per_block *
              static_cast<std::int64_t>((order.count + work.wave - 1) / work.wave * work.wave),
      .cut = order.count < work.blocks};
  const device::Timeline::Span span = timelines_[order.priority_class].Append(now_, asked);
  if (last_end_ != Time{} && span.started > last_end_) {
    largest_idle_gap_ = std::max(largest_idle_gap_, span.started - last_end_);
  }
  last_end_ = span.ended;
  const auto ticket = static_cast<std::uint64_t>(order.ticket);
  const Executed command{order.session, order.job->id, order.operation, order.first,
                         order.count,   now_,          span.started,    span.ended};
  executed_.push_back(command);
  in_flight_.emplace(ticket, command);
  After(span.ended - now_ + options_.lateness, [this, ticket, epoch = device_epoch_] {
    if (epoch != device_epoch_) return;
    const auto found = in_flight_.find(ticket);
    const Executed done = found->second;
    in_flight_.erase(found);
    core::CommandFinished fact;
    fact.ticket = core::Ticket{ticket};
    fact.started = done.started;
    fact.ended = done.ended;
    Feed(std::move(fact));
  });
}

void VirtualDriver::Finish(core::FinishJob& order) {
  const core::Job& job = *order.job;
  --outstanding_;
  jobs_.push_back({job.session, job.id, order.outcome, job.arrived, job.first_start, job.last_end,
                   job.deadline});
  const auto source = sources_.find(job.session);
  if (source == sources_.end() || source->second.outstanding == 0) return;
  After(Duration(0), [this, id = job.session] {
    const auto again = sources_.find(id);
    if (again != sources_.end()) Submit(id, again->second.work);
  });
}

Duration VirtualDriver::Got(SessionId id) const {
  const auto status = scheduler_->Find(now_, id);
  return status ? status->account.charged : Duration(0);
}

double VirtualDriver::ShareOf(SessionId id, Time from, Time to) const {
  Duration got{0};
  for (const SliceReport& slice : slices_) {
    if (slice.session != id) continue;
    const Time begin = std::max(from, slice.ended - slice.charged), end = std::min(to, slice.ended);
    if (end > begin) got += end - begin;
  }
  return std::chrono::duration<double>(got) / (to - from);
}

std::vector<JobRecord> VirtualDriver::JobsOf(SessionId id) const {
  std::vector<JobRecord> of;
  for (const JobRecord& job : jobs_) {
    if (job.session == id) of.push_back(job);
  }
  return of;
}

}  // namespace gpusched::testing
