// The clients of a scenario: each submits the jobs of one session and keeps what became of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/random.h"
#include "sim/scenario.h"
#include "sim/simulation.h"

namespace gpusched::sim {

// What became of a session's jobs. Those that arrived in the warm-up are not counted.
struct Outcomes {
  std::uint64_t submitted = 0;
  std::uint64_t done = 0, failed = 0, refused = 0, cancelled = 0, skipped = 0;
  std::uint64_t met = 0;            // done by their deadline, or done where there is none
  std::vector<Duration> latencies;  // of those done, from arrival to the end of the last command
  std::uint64_t unfinished() const {
    return submitted - done - failed - refused - cancelled - skipped;
  }
};

class SessionLoad : public Client {
 public:
  // Opens the session now; jobs arrive from now until `until`, and count from `count_from` on.
  static std::unique_ptr<SessionLoad> Start(Simulation&, const SessionSpec&, std::uint64_t seed,
                                            Time count_from, Time until);

  SessionLoad(const SessionSpec&, std::uint64_t seed);
  SessionId session() const { return session_; }
  const Outcomes& outcomes() const { return outcomes_; }
  // Of a trace that could be read when the scenario was loaded and no longer can.
  const Status& status() const { return status_; }

  void JobEnded(Simulation&, const core::Job&, core::JobOutcome, const Status& refusal) override;

 protected:
  virtual void Begin(Simulation&) = 0;
  virtual void Ended(Simulation&) {}  // of a job that was not refused; the place of closed loops

  // False: no more jobs come.
  bool Open(const Simulation& sim) const { return sim.now() < until_; }
  void Submit(Simulation&, std::shared_ptr<const Recipe>, std::uint32_t queue);
  // In turn over the session's queues.
  void SubmitNext(Simulation&, std::shared_ptr<const Recipe>);

  const SessionSpec& spec() const { return spec_; }
  const SourceSpec& source() const { return spec_.source; }
  Random& random() { return random_; }
  Time began() const { return began_; }
  void Fail(const Status& status) { status_ = status; }

 private:
  const SessionSpec spec_;
  Random random_;
  SessionId session_;
  Time began_{}, count_from_{}, until_{};
  std::uint32_t next_queue_ = 0;
  Outcomes outcomes_;
  Status status_;
};

}  // namespace gpusched::sim
