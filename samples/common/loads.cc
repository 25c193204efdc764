// Instants on a steady clock; reports come by callback or by waiting.
#include "common/loads.h"

#include <gpusched/reasons.h>

#include <cmath>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

namespace samples {
namespace {

using Clock = std::chrono::steady_clock;
using gpusched::Duration;

// What has not come back so long after the last job was due counts as unfinished.
constexpr std::chrono::seconds kGrace{5};

Fate FateOf(const gpusched::Result<gpusched::JobReport>& report) {
  if (!report.ok()) return Fate::kFailed;
  switch (report->outcome) {
    case gpusched::Outcome::kDone: return Fate::kDone;
    case gpusched::Outcome::kSkipped: return Fate::kSkipped;
    case gpusched::Outcome::kCancelled: return Fate::kFailed;
  }
  return Fate::kFailed;
}

// Why a job was not done, where that is a failure; OK if it was done or skipped.
gpusched::Status FaultOf(const gpusched::Result<gpusched::JobReport>& report) {
  if (!report.ok()) return report.status();
  return FateOf(report) == Fate::kFailed ? report->why : gpusched::Status::Ok();
}

// After it nothing more can be submitted to the session.
bool EndsSession(const gpusched::Status& status) {
  namespace reason = gpusched::reason;
  for (const std::string_view last : {reason::kDaemonLost, reason::kKilled, reason::kSessionClosed,
                                      reason::kDraining, reason::kDeviceLost}) {
    if (status.reason() == last) return true;
  }
  return false;
}

// What the callbacks fill in; they keep it alive, for one may still be on its way at the end.
struct Notes {
  std::mutex mutex;  // between the sending thread and the library's
  std::condition_variable changed;
  LoadOutcome outcome;
  std::size_t known = 0;
  bool ended = false;  // the session

  void Note(std::size_t index, Clock::time_point due,
            const gpusched::Result<gpusched::JobReport>& report) {
    const Duration latency = Clock::now() - due;
    const std::lock_guard<std::mutex> lock(mutex);
    LoadedJob& job = outcome.jobs[index];
    job.fate = FateOf(report);
    job.latency = latency;
    if (report.ok()) job.report = *report;
    const gpusched::Status fault = FaultOf(report);
    if (outcome.first_error.ok()) outcome.first_error = fault;
    ended |= EndsSession(fault);
    ++known;
    changed.notify_one();
  }
};

}  // namespace

LoadOutcome RunWhenDue(const std::vector<Duration>& due, const SubmitIndexed& submit,
                       gpusched::SubmitOptions options) {
  const auto notes = std::make_shared<Notes>();
  notes->outcome.jobs.resize(due.size());
  options.when_full = gpusched::WhenFull::kFail;
  std::vector<gpusched::Submission> submissions;
  submissions.reserve(due.size());
  const Clock::time_point start = Clock::now();
  std::size_t sent = 0;
  for (std::size_t index = 0; index < due.size(); ++index) {
    const Clock::time_point at = start + due[index];
    {
      std::unique_lock<std::mutex> lock(notes->mutex);
      if (notes->changed.wait_until(lock, at, [&] { return notes->ended; })) break;
    }
    ++sent;
    options.on_done = [notes, index, at](const auto& report) { notes->Note(index, at, report); };
    auto submission = submit(index, options);
    if (submission.ok()) {
      submissions.push_back(*std::move(submission));
    } else {
      notes->Note(index, at, submission.status());
    }
  }
  // Those that were never sent stay unfinished.
  std::unique_lock<std::mutex> lock(notes->mutex);
  const auto all_known = [&] { return notes->known == sent; };
  if (!notes->changed.wait_for(lock, kGrace, all_known)) {
    // They stay unfinished in the outcome; but what they read into is the caller's, who gets it
    // back only when nobody writes to it any more.
    const LoadOutcome so_far = notes->outcome;
    lock.unlock();
    for (gpusched::Submission& submission : submissions) (void)submission.Cancel();
    lock.lock();
    notes->changed.wait(lock, all_known);
    notes->outcome = so_far;
  }
  notes->outcome.elapsed = Clock::now() - start;
  return notes->outcome;
}

std::vector<Duration> RandomInstants(double per_second, Duration length, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::exponential_distribution<double> gap(per_second);
  std::vector<Duration> instants;
  for (double at = gap(random);; at += gap(random)) {
    const Duration instant(std::llround(at * 1e9));
    if (instant >= length) return instants;
    instants.push_back(instant);
  }
}

std::vector<Duration> EvenInstants(Duration period, Duration length) {
  std::vector<Duration> instants;
  for (Duration at{0}; at < length; at += period) instants.push_back(at);
  return instants;
}

LoadOutcome RunBackToBack(Duration length, std::size_t outstanding, const SubmitIndexed& submit,
                          const std::function<void(std::size_t index)>& done) {
  LoadOutcome outcome;
  std::deque<gpusched::Submission> out;
  std::size_t waited_for = 0;
  const auto wait_for_oldest = [&] {
    const auto report = out.front().Wait();
    out.pop_front();
    LoadedJob& job = outcome.jobs[waited_for];
    job.fate = FateOf(report);
    if (report.ok()) {
      job.report = *report;
      job.latency = report->total;
    }
    if (job.fate == Fate::kDone) {
      done(waited_for);
    } else if (outcome.first_error.ok()) {
      outcome.first_error = report.ok() ? report->why : report.status();
    }
    ++waited_for;
  };
  const Clock::time_point start = Clock::now();
  while (outcome.first_error.ok() && Clock::now() < start + length) {
    if (out.size() == outstanding) {
      wait_for_oldest();
      continue;
    }
    auto submission = submit(outcome.jobs.size(), {});
    if (submission.ok()) {
      outcome.jobs.emplace_back();
      out.push_back(*std::move(submission));
    } else {
      outcome.first_error = submission.status();
    }
  }
  while (!out.empty()) wait_for_oldest();
  outcome.elapsed = Clock::now() - start;
  return outcome;
}

}  // namespace samples
