// Runs the real scheduler and the real policy in virtual time, on a device that only counts.
//
// One device, any number of sessions. Facts go in at exact times, orders are carried out by a model
// of the device with the same costs as the virtual device. The same options, policy and calls give
// the same history everywhere: there is no clock, no floating point and no random number but the
// seed's own. hash() tells two histories apart.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/scheduler.h"
#include "core/session_ids.h"
#include "device/virtual/cost_model.h"
#include "gpusched/reasons.h"
#include "gpusched/status.h"
#include "sim/history_hash.h"
#include "sim/model_device.h"

namespace gpusched::sim {

class Simulation;

// Sees everything that passes between the driver and the core, in order.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void OnEvent(Time, const core::Event&) {}    // just before the core has it
  virtual void OnAction(Time, const core::Action&) {}  // just before it is carried out
  // All orders of one fact or wake-up are carried out.
  virtual void AfterStep(Time, const core::Scheduler&) {}
};

// Stands between driver and core; as it is, it passes everything on. Observers see what the driver
// hands in and what it is ordered, so that a shim that distorts is a broken core to them.
class Shim {
 public:
  virtual ~Shim() = default;
  virtual void Handle(core::Scheduler& core, Time now, core::Event event) {
    core.Handle(now, std::move(event));
  }
  virtual void Advance(core::Scheduler& core, Time now, std::vector<core::Action>& actions) {
    core.Advance(now, actions);
  }
  virtual Time NextWakeup(const core::Scheduler& core) { return core.NextWakeup(); }
};

// One operation of a job as the core sees it, and what it asks of the device in all.
struct Work {
  core::Operation operation;
  Duration time{0};  // of the whole extent, spread evenly over its units
};
using Recipe = std::vector<Work>;

// A launch of `blocks`, whose kernel the core knows by `key`.
Work LaunchOf(Duration time, std::uint64_t blocks, std::uint64_t key, bool cuttable = true);

// Who submits jobs: told when they end and when a time it asked for has come. Outlives the
// simulation's runs.
class Client {
 public:
  virtual ~Client() = default;
  virtual void Woken(Simulation&) {}
  // Ended (FinishJob) or refused (`refusal` says why). May submit, open, close and so on.
  virtual void JobEnded(Simulation&, const core::Job&, core::JobOutcome,
                        const Status& /*refusal*/) {}
};

inline constexpr std::int64_t kOrdinaryScale = 1'000'000'000;

struct JobOrder {
  SessionId session;
  std::shared_ptr<const Recipe> recipe;     // at least one operation, or the core refuses it
  std::int64_t scale_ppb = kOrdinaryScale;  // its work is so many billionths of the recipe's
  Time arrived = kNever;                    // when Submit was called, not after now; kNever: now
  Time deadline = kNever;
  std::uint32_t queue = 0;
  bool skip_if_late = false;
  Client* client = nullptr;
};

struct SimulationOptions {
  device::Costs costs;
  core::Limits limits;
  core::DeviceTraits traits;
  core::PolicySpec policy{.kind = "", .parameters = "", .generation = 1, .source = "simulation"};
  // A completion is heard of so long after it, as where a thread has to wake up for it.
  Duration lateness{0};
  std::uint64_t seed = 1;  // of the device's noise, beside the cost file's own
};

class Simulation {
 public:
  // Not the epoch: to the core that means "never".
  static constexpr Time kStart{std::chrono::seconds(1)};

  // `policy` may be anybody's; options.policy is its description. `shim` may be empty.
  Simulation(SimulationOptions options, std::unique_ptr<Policy> policy,
             std::unique_ptr<Shim> shim = nullptr);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  void AddObserver(Observer*);  // in the order they are called; each outlives the simulation

  // Facts, now. From within a callback they wait until the orders at hand are carried out.
  SessionId Open(const Share&);
  void Change(SessionId, const Share&);
  void Close(SessionId);
  void Pause(SessionId);
  void Resume(SessionId);
  std::uint64_t Submit(const JobOrder&);  // the job's id: never zero, never reused
  void Cancel(SessionId, std::uint64_t job);
  void SetPolicy(const std::string& kind, const std::string& parameters, std::unique_ptr<Policy>);
  void SetPreemptionBound(Duration);
  // Everything in flight is lost, in start order; nothing starts until it is restored.
  void LoseDevice();
  void RestoreDevice();
  void Feed(core::Event);  // any other fact

  // Decides what becomes of each command; none: each takes the time the costs say.
  void SetFate(std::function<void(Time now, const core::StartCommand&, Fate&)> fate) {
    fate_ = std::move(fate);
  }

  void At(Time, std::function<void()>);
  void WakeAt(Time, Client*);

  // Everything up to and at `end`; then now() is `end`.
  void RunUntil(Time end);
  // One thing that happens, at most at `end`. False: there is none.
  bool Step(Time end);

  Time now() const { return now_; }
  const core::Scheduler& scheduler() const { return *core_; }
  const ModelDevice& device() const { return device_; }
  std::uint64_t hash() const { return hash_.value(); }
  std::uint64_t steps() const { return steps_; }        // facts and wake-ups handed to the core
  std::uint64_t commands() const { return commands_; }  // started
  std::uint64_t jobs_outstanding() const { return jobs_outstanding_; }

 private:
  struct Body;
  struct Callback;
  struct Alarm {
    Time at{};
    std::uint64_t order = 0;
    Client* client = nullptr;
    bool ours = false;  // a Callback; others' clients may be gone before the simulation is
    bool operator>(const Alarm& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  void Turn();
  void Drain();
  void Carry(core::Action&);
  void Start(const core::StartCommand&);
  void Ended(std::unique_ptr<core::Job>, core::JobOutcome, const Status& refusal);
  void SetAlarm(Alarm);
  Time NextAlarm() const { return alarms_.empty() ? kNever : alarms_.front().at; }

  const SimulationOptions options_;
  std::unique_ptr<Shim> shim_;
  std::unique_ptr<core::Scheduler> core_;
  std::vector<Observer*> observers_;
  ModelDevice device_;
  core::SessionIds ids_;
  HistoryHash hash_;
  std::function<void(Time, const core::StartCommand&, Fate&)> fate_;
  Time now_ = kStart;
  std::vector<Alarm> alarms_;                  // a heap, earliest first
  std::vector<core::Event> facts_, handling_;  // waiting for the orders at hand
  std::vector<core::Action> actions_;
  bool busy_ = false;  // facts are being handled
  std::uint64_t alarm_order_ = 0, last_job_ = 0, generation_ = 1;
  std::uint64_t steps_ = 0, commands_ = 0, jobs_outstanding_ = 0;
};

}  // namespace gpusched::sim
