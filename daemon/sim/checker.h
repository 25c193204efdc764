// Holds a scheduler to its rules from outside: it sees facts and orders, and keeps its own book.
//
// It shares no code with core and policies but the types of facts, orders and sessions; times are
// those the device reported, shares are those of its own fluid reference. Each rule is in rules.h,
// and each has a mutant (mutants.h) that it catches.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/limits.h"
#include "sim/book.h"
#include "sim/rules.h"
#include "sim/share_meter.h"
#include "sim/simulation.h"
#include "sim/witness.h"

namespace gpusched::sim {

struct CheckerOptions {
  core::Limits limits;
  std::uint32_t priority_classes = 1;  // of the device; one keeps order
  Duration preemption_bound{0};
  Duration shortest_useful_chunk{0};
  core::PolicySpec policy;                  // in force at the start
  ShareRule share_rule = ShareRule::kNone;  // its
  const Witness* witness = nullptr;  // without one, what a policy says is not held against it
};

class Checker final : public Observer {
 public:
  explicit Checker(const CheckerOptions&);

  void OnEvent(Time, const core::Event&) override;
  void OnAction(Time, const core::Action&) override;
  void AfterStep(Time, const core::Scheduler&) override;
  // After the last step, every session closed and the device there: nothing may be left.
  void ExpectNothingLeft(Time now);

  const std::vector<Violation>& violations() const { return violations_; }
  std::uint64_t commands() const { return commands_; }
  const ShareMeter& shares() const { return meter_; }

 private:
  using Session = BookedSession;

  // Facts (checker_facts.cc).
  void On(const core::SessionOpened&);
  void On(const core::SessionChanged&);
  void On(const core::SessionClosed&);
  void On(const core::JobSubmitted&);
  void On(const core::JobCancelled&);
  void On(const core::Paused&);
  void On(const core::Resumed&);
  void On(const core::CommandFinished&);
  void On(const core::DeviceLost&);
  void On(const core::DeviceRestored&);
  void On(const core::PolicyChanged&);
  void On(const core::SettingsChanged&);
  bool MustRefuse(const core::Job&) const;
  void Cancel(Session&, BookedJob&);
  Duration Charge(BookedFlight&, const core::CommandFinished&);
  std::int64_t LineOf(const Session&) const;
  void Settle(const BookedFlight&, const core::CommandFinished&, Duration charged);
  void TakePolicy(const core::PolicySpec&, ShareRule);

  // Orders (checker_orders.cc).
  void On(const core::StartCommand&);
  void On(const core::Interrupt&) {}
  void On(const core::FinishJob&);
  void On(const core::RefuseJob&);
  void On(const core::SessionGone&);
  void On(const core::RecordSlice&);
  void On(const core::PolicyEjected&);
  BookedJob* JobToStart(Session&, const core::StartCommand&);
  void CheckMayStart(const Session&);
  void CheckInFlight(const BookedFlight&);

  // Rules over time (checker_rules.cc).
  void TimePasses(Time now);
  void CheckIdle();
  void CheckWaits();
  void CheckAccounts(const core::Scheduler&);
  void CheckShares();
  void CheckInversion(const Session& higher, Time served);
  void CheckRescue(const SliceReport&);
  double OutOfReach(const Session&) const;
  Duration CapWait();
  void BeginStretch();  // of time in which the set of those who share stays the same
  Duration BoundInForce(std::int32_t priority) const;
  bool SurelyCanRun(const Session&) const;
  bool Capped(const Session&) const;
  bool HigherCouldRun(std::int32_t priority) const;

  Session* Find(SessionId) const;
  void Moved(Session&);  // its work or run state may have changed
  void SetGroupRates();
  void Fault(Rule, std::string what);

  const CheckerOptions options_;
  const Witness* const witness_;
  Time now_{};
  std::uint64_t step_ = 0, commands_ = 0;
  std::vector<Violation> violations_;

  std::vector<std::unique_ptr<Session>> sessions_;  // by slot
  std::vector<BookedFlight> flights_;               // in order of start
  std::unordered_set<std::uint64_t> to_refuse_;     // jobs, in this step
  std::unordered_set<std::uint64_t> to_end_;        // likewise
  std::vector<SessionId> touched_;                  // in this step, by a command's end
  Duration bound_setting_{0};
  bool lost_ = false;

  Time device_end_{};                        // of the last command that ended
  std::map<std::int64_t, Time> line_ends_;   // likewise, of each line
  const Session* device_session_ = nullptr;  // whose it was, and whether its slice is recorded
  Duration longest_command_{0};
  Rate strict_min_ = 0, kept_free_ = 0;
  CapWatch group_;      // the sessions that are not strict, together
  CapWatch everybody_;  // all sessions, beside strict ones without work
  // What limits let be saved while a command in one piece holds the device, and a while longer.
  std::deque<std::pair<Time, Duration>> cap_waits_;

  core::PolicySpec policy_;
  Rate background_share_ = 0;
  bool built_in_ = false, priorities_ = false;
  std::deque<SliceReport> rescues_;  // of the last second
  Duration longest_rescue_{0};
  std::deque<Executed> executed_;  // the latest
  Time waits_checked_{};

  ShareMeter meter_;
  std::vector<double> lags_;  // at the begin of the stretch, by slot
  double furthest_ = 0;       // from par, then
  double out_of_reach_ = 0;   // since then: asked by sessions with all their work on the device
  double surprises_ = 0;      // since then: of commands that took far longer than expected
  Duration longest_slice_{0};
};

}  // namespace gpusched::sim
