// Time jumps from one thing that happens to the next; between two of them everything stands still.
#include "sim/simulation.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

namespace gpusched::sim {

struct Simulation::Body : core::JobBody {
  std::shared_ptr<const Recipe> recipe;
  std::int64_t scale_ppb = kOrdinaryScale;
  Client* client = nullptr;

  // Device time of units [first, first + count) of an operation; over a whole launch cut anyhow it
  // sums to the same.
  Duration TimeOf(std::uint32_t operation, std::uint64_t first, std::uint64_t count) const {
    __extension__ using Product = __int128;
    const struct Work& work = (*recipe)[operation];
    Product total = work.time.count();
    if (scale_ppb != kOrdinaryScale) total = total * scale_ppb / kOrdinaryScale;
    const std::uint64_t extent = work.operation.extent;
    if (count == extent) return Duration(static_cast<std::int64_t>(total));
    return Duration(
        static_cast<std::int64_t>(total * (first + count) / extent - total * first / extent));
  }
};

// A function that was to be called at a time; it is gone afterwards.
struct Simulation::Callback : Client {
  explicit Callback(std::function<void()> function) : what(std::move(function)) {}
  void Woken(Simulation&) override {
    const std::unique_ptr<Callback> self(this);
    what();
  }
  std::function<void()> what;
};

Work LaunchOf(Duration time, std::uint64_t blocks, std::uint64_t key, bool cuttable) {
  return {.operation = {.cuttable = cuttable, .extent = blocks, .estimate_key = key}, .time = time};
}

Simulation::Simulation(SimulationOptions options, std::unique_ptr<Policy> policy,
                       std::unique_ptr<Shim> shim)
    : options_(std::move(options)),
      shim_(std::move(shim)),
      device_(options_.costs, options_.seed, options_.traits.can_interrupt),
      generation_(options_.policy.generation) {
  core_ = std::make_unique<core::Scheduler>(options_.limits, options_.traits, options_.policy,
                                            std::move(policy));
}

Simulation::~Simulation() {
  for (const Alarm& alarm : alarms_) {
    if (alarm.ours) delete static_cast<Callback*>(alarm.client);
  }
}

void Simulation::AddObserver(Observer* observer) { observers_.push_back(observer); }

SessionId Simulation::Open(const Share& share) {
  const SessionId id = ids_.Take();
  Feed(core::SessionOpened{id, share});
  return id;
}
void Simulation::Change(SessionId id, const Share& share) { Feed(core::SessionChanged{id, share}); }
void Simulation::Close(SessionId id) {
  Feed(core::SessionClosed{id, Status(StatusCode::kCancelled, reason::kSessionClosed,
                                      "the simulated client closed it")});
}
void Simulation::Pause(SessionId id) { Feed(core::Paused{id}); }
void Simulation::Resume(SessionId id) { Feed(core::Resumed{id}); }

std::uint64_t Simulation::Submit(const JobOrder& order) {
  auto job = std::make_unique<core::Job>();
  job->session = order.session;
  job->id = ++last_job_;
  job->queue = order.queue;
  job->arrived = std::min(order.arrived, now_);
  job->received = now_;
  job->deadline = order.deadline;
  job->skip_if_late = order.skip_if_late;
  job->operations.reserve(order.recipe->size());
  for (const struct Work& work : *order.recipe) job->operations.push_back(work.operation);
  auto body = std::make_unique<Body>();
  body->recipe = order.recipe;
  body->scale_ppb = order.scale_ppb;
  body->client = order.client;
  job->body = std::move(body);
  ++jobs_outstanding_;
  Feed(core::JobSubmitted{std::move(job)});
  return last_job_;
}
void Simulation::Cancel(SessionId id, std::uint64_t job) { Feed(core::JobCancelled{id, job}); }

void Simulation::SetPolicy(const std::string& kind, const std::string& parameters,
                           std::unique_ptr<Policy> policy) {
  Feed(core::PolicyChanged{
      {.kind = kind, .parameters = parameters, .generation = ++generation_, .source = "simulation"},
      std::move(policy)});
}
void Simulation::SetPreemptionBound(Duration bound) { Feed(core::SettingsChanged{bound}); }

void Simulation::LoseDevice() {
  if (busy_) {  // orders at hand go to the device first
    At(now_, [this] { LoseDevice(); });
    return;
  }
  std::vector<core::CommandFinished> lost = device_.Lose(now_);
  // The core knows of the loss before it could start anything on what is no longer there.
  facts_.emplace_back(core::DeviceLost{
      Status(StatusCode::kUnavailable, reason::kDeviceLost, "the simulated device was lost")});
  for (core::CommandFinished& fact : lost) facts_.emplace_back(std::move(fact));
  Drain();
}
void Simulation::RestoreDevice() { Feed(core::DeviceRestored{}); }

void Simulation::Feed(core::Event event) {
  facts_.push_back(std::move(event));
  Drain();
}

void Simulation::At(Time at, std::function<void()> what) {
  SetAlarm({at, 0, new Callback(std::move(what)), true});
}
void Simulation::WakeAt(Time at, Client* client) { SetAlarm({at, 0, client}); }

void Simulation::SetAlarm(Alarm alarm) {
  alarm.at = std::max(alarm.at, now_);
  alarm.order = alarm_order_++;
  alarms_.push_back(alarm);
  std::push_heap(alarms_.begin(), alarms_.end(), std::greater<>());
}

// Every fact is a step of its own: handed in, decided upon, its orders carried out. What callbacks
// feed meanwhile waits its turn.
void Simulation::Drain() {
  if (busy_) return;
  busy_ = true;
  while (!facts_.empty()) {
    handling_.clear();
    handling_.swap(facts_);
    for (core::Event& event : handling_) {
      hash_.Add(now_, event);
      for (Observer* observer : observers_) observer->OnEvent(now_, event);
      if (shim_) {
        shim_->Handle(*core_, now_, std::move(event));
      } else {
        core_->Handle(now_, std::move(event));
      }
      Turn();
    }
  }
  busy_ = false;
}

void Simulation::Turn() {
  ++steps_;
  actions_.clear();
  if (shim_) {
    shim_->Advance(*core_, now_, actions_);
  } else {
    core_->Advance(now_, actions_);
  }
  for (core::Action& action : actions_) {
    hash_.Add(now_, action);
    for (Observer* observer : observers_) observer->OnAction(now_, action);
    Carry(action);
  }
  for (Observer* observer : observers_) observer->AfterStep(now_, *core_);
}

void Simulation::Carry(core::Action& action) {
  std::visit(
      [this](auto& order) {
        using Order = std::decay_t<decltype(order)>;
        if constexpr (std::is_same_v<Order, core::StartCommand>) {
          Start(order);
        } else if constexpr (std::is_same_v<Order, core::Interrupt>) {
          device_.Interrupt(now_, order.ticket);
        } else if constexpr (std::is_same_v<Order, core::FinishJob>) {
          Ended(std::move(order.job), order.outcome, Status::Ok());
        } else if constexpr (std::is_same_v<Order, core::RefuseJob>) {
          Ended(std::move(order.job), core::JobOutcome::kCancelled, order.why);
        } else if constexpr (std::is_same_v<Order, core::SessionGone>) {
          ids_.Release(order.session);
        } else if constexpr (std::is_same_v<Order, core::PolicyEjected>) {
          generation_ = std::max(generation_, order.now.generation);
        } else {
          static_assert(std::is_same_v<Order, core::RecordSlice>);
        }
      },
      action);
}

void Simulation::Start(const core::StartCommand& order) {
  ++commands_;
  const Body& body = static_cast<const Body&>(*order.job->body);
  Fate fate;
  fate.work = body.TimeOf(order.operation, order.first, order.count);
  if (fate_) fate_(now_, order, fate);
  device_.Start(now_, order, order.job->operations[order.operation].extent, fate);
}

void Simulation::Ended(std::unique_ptr<core::Job> job, core::JobOutcome outcome,
                       const Status& refusal) {
  --jobs_outstanding_;
  Client* client = static_cast<const Body&>(*job->body).client;
  if (client != nullptr) client->JobEnded(*this, *job, outcome, refusal);
}

bool Simulation::Step(Time end) {
  const Time heard = After(device_.NextEnd(), options_.lateness);
  const Time alarm = NextAlarm();
  const Time wakeup = shim_ ? shim_->NextWakeup(*core_) : core_->NextWakeup();
  const Time next = std::max(now_, std::min({heard, alarm, wakeup}));
  if (next > end || next == kNever) return false;
  now_ = next;
  // What ends at an instant is known before what comes then is decided upon.
  if (heard <= next) {
    Feed(device_.TakeEnded());
  } else if (alarm <= next) {
    Client* client = alarms_.front().client;
    std::pop_heap(alarms_.begin(), alarms_.end(), std::greater<>());
    alarms_.pop_back();
    client->Woken(*this);
  } else {
    busy_ = true;
    Turn();
    busy_ = false;
    Drain();
  }
  return true;
}

void Simulation::RunUntil(Time end) {
  while (Step(end)) {}
  now_ = std::max(now_, end);
}

}  // namespace gpusched::sim
