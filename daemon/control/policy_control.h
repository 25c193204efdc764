// The policy in force on all devices: checked, applied, remembered, rolled back, expired, ejected.
//
// A change is a transaction: everything that is wrong is said and nothing happens, or every
// executor gets an instance of its own between two of its decisions, with known sessions and their
// accounts.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "catalog.h"
#include "core/action.h"
#include "executor/executor.h"
#include "gpusched/policy/params.h"
#include "gpusched/status.h"

namespace gpusched::control {

// A policy value and its history.
struct PolicyRecord {
  std::string kind;
  ParameterText parameters;  // all of them, defaults included
  std::string canonical;
  std::uint64_t generation = 0;
  std::string source;
  std::string etag;
  std::chrono::system_clock::time_point since{};
  std::chrono::system_clock::time_point expires{};  // the epoch: stays
  std::string note;
};

// What was wrong, all of it.
struct PolicyFault {
  Status status;
  std::vector<FieldError> fields;
};

struct PolicyChange {
  std::string kind;  // "": the kind in force, its other parameters kept
  ParameterText parameters;
  std::string etag;  // "": whatever is in force
  // 0: stays, or, where only parameters change, as long as what is in force; else what was in force
  // comes back after it, for what is left of its own time.
  Duration lasts{0};
  std::string source;
};

template <typename T>
struct PolicyAnswer {
  T value{};
  PolicyFault fault;
  bool ok() const { return fault.status.ok(); }
};

class PolicyControl {
 public:
  static constexpr std::size_t kHistory = 100;  // values an operator may want to go back to
  static constexpr Duration kLongestFor = std::chrono::hours(24 * 30);

  // Generation 1 is what the executors were made with.
  PolicyControl(PolicyRecord first, boost::asio::io_context& events);
  // Once, before anything else is called.
  void Govern(std::vector<executor::Executor*> executors) { executors_ = std::move(executors); }

  // Any control thread.
  static PolicyAnswer<PolicyRecord> Validate(const std::string& kind,
                                             const ParameterText& parameters);
  PolicyAnswer<PolicyRecord> Apply(const PolicyChange& change);
  // Generation 0: the value before.
  PolicyAnswer<PolicyRecord> RollBack(std::uint64_t generation, const std::string& source);
  PolicyRecord current() const;
  std::vector<PolicyRecord> History() const;  // newest first

  // What the configuration file says, valid and canonical.
  void RememberFile(const std::string& kind, const std::string& canonical);
  bool FileDiffers(const PolicyRecord& record) const;

  // From an executor's holder, through the event thread: the faulty policy is out on every device.
  void Ejected(std::uint32_t device, const core::PolicyEjected& ejected);
  // No timer fires any more.
  void Stop();

 private:
  PolicyRecord Install(BuiltPolicy built, const std::string& source, const std::string& note,
                       std::uint64_t generation);
  // How long a value is in force.
  struct Term {
    Time ends = kNever;  // it stays
    std::chrono::system_clock::time_point shown{};
  };
  // Of the value in force.
  void SetTerm(const Term& term);
  void Expire(Time ends);
  void Remember(PolicyRecord record);

  std::vector<executor::Executor*> executors_;
  boost::asio::io_context& events_;
  // Orders changes among operators, reloads and expiry. Never held by a holder of a baton:
  // ejections come through the event thread.
  mutable std::mutex mutex_;
  std::deque<PolicyRecord> history_;  // oldest first, never empty
  std::string file_kind_, file_canonical_;
  std::uint64_t boot_ = 0;  // tells etags of this daemon's life from an earlier one's
  Term term_;               // of the value in force
  // What a value with an end goes back to; under that, what that goes back to. Each ends later than
  // what is above it, and the first one stays.
  struct Beneath {
    PolicyRecord record;
    Term term;
  };
  std::vector<Beneath> beneath_;
  std::shared_ptr<boost::asio::steady_timer> expiry_;  // the event thread's
  bool stopped_ = false;
};

}  // namespace gpusched::control
