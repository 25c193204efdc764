// The open-loop load: requests go out when they are due, whatever became of the ones before.
//
// Latency counts from the instant a request was due, not from when it was sent, so a generator or a
// daemon that falls behind makes the figures worse, never better. Whatever is not answered
// (refused, cancelled, failed) counts as missed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gpusched/client.h"
#include "support/arrivals.h"
#include "support/percentile.h"

namespace gpusched::bench {

using SteadyTime = std::chrono::steady_clock::time_point;

enum class Fate : std::uint8_t {
  kOutstanding,  // not answered yet
  kAnswered,
  kCancelled,
  kRefused,  // the window was full, or the daemon refused it
  kFailed,   // the device, the session or the daemon
};

struct Request {
  SteadyTime due{};
  Duration work{0};
  Fate fate = Fate::kOutstanding;
  Duration behind{0};   // sent so long after it was due
  Duration latency{0};  // due to the answer in the caller's hands; else until it was given up
  JobReport report;     // where answered
};

class OpenLoop {
 public:
  // Submits one request, without blocking on a full window; called by the generator's own thread.
  using Submit = std::function<Result<Submission>(const Arrival&, const SubmitOptions&)>;

  // Arrivals count from `start`. The session behind `submit` must outlive this. `options` go with
  // every request; its when_full and on_done are the generator's.
  OpenLoop(Arrivals arrivals, SteadyTime start, Submit submit, SubmitOptions options = {});
  // Sends nothing more, cancels what is outstanding and waits for its end.
  ~OpenLoop();
  OpenLoop(const OpenLoop&) = delete;
  OpenLoop& operator=(const OpenLoop&) = delete;

  // Cancels what is outstanding now and returns when its end is known. The load goes on.
  void CancelBacklog();
  // Returns when all arrivals were sent and their end is known.
  void Finish();

  // Of those due in [from, to), in that order.
  std::vector<Request> Between(SteadyTime from, SteadyTime to) const;
  std::vector<Request> All() const;

 private:
  class Generator;
  std::shared_ptr<Generator> generator_;
};

// The part of the requests answered within `target`; 1 of none.
double OnTime(const std::vector<Request>& requests, Duration target);

// Latencies for Percentile. One that was cancelled took at least until then; one that was refused
// or failed has no answer at all and is longer than any other.
std::vector<Measured> Latencies(const std::vector<Request>& requests);

}  // namespace gpusched::bench
