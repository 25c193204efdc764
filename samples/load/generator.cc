// Makes requests, open or closed loop.
#include "generator.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>

namespace load {
namespace {

using Clock = std::chrono::steady_clock;

// What has not come back this long after the last request was sent counts as unfinished.
constexpr std::chrono::seconds kGrace{5};

struct Sent {
  gpusched::Submission submission;
  gpusched::Duration late_start{0};  // from the intended instant to the call
};

void Count(const Sent& sent, const gpusched::Result<gpusched::JobReport>& report,
           Outcome& outcome) {
  if (!report.ok() || report->outcome != gpusched::Outcome::kDone) {
    ++outcome.failed;
    const gpusched::Status why = report.ok() ? report->why : report.status();
    if (outcome.first_error.ok()) outcome.first_error = why;
    // A job that is only late may still come; no other failure goes away by sending more.
    const bool lasting = !report.ok() && why.reason() != gpusched::reason::kWaitTimedOut;
    if (lasting && outcome.broke_off.ok()) outcome.broke_off = why;
    return;
  }
  outcome.latencies.push_back(sent.late_start + report->total);
  outcome.charged += report->charged;
  outcome.longest_queued = std::max(outcome.longest_queued, report->queued);
}

// Sends one; nothing where it was refused.
std::optional<Sent> Send(gpusched::Session& session, const gpusched::Template& request,
                         Clock::time_point intended, gpusched::WhenFull when_full,
                         Outcome& outcome) {
  const gpusched::Duration late_start = Clock::now() - intended;
  ++outcome.sent;
  gpusched::Result<gpusched::Submission> submission =
      session.Submit(request, {.when_full = when_full});
  if (submission.ok()) return Sent{*std::move(submission), late_start};
  ++outcome.refused;
  const gpusched::Status& why = submission.status();
  if (outcome.first_error.ok()) outcome.first_error = why;
  // A full window has room again later.
  if (why.code() != gpusched::StatusCode::kResourceExhausted) outcome.broke_off = why;
  return std::nullopt;
}

// Waits for requests in the order in which they were sent, on a thread of its own, so that whoever
// sends is never late because of it.
class Collector {
 public:
  explicit Collector(Outcome& outcome) : outcome_(outcome), thread_([this] { Run(); }) {}

  void Add(Sent sent) {
    const std::lock_guard<std::mutex> lock(mutex_);
    sent_.push_back(std::move(sent));
    changed_.notify_one();
  }
  void Finish() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      finish_by_ = Clock::now() + kGrace;
      changed_.notify_one();
    }
    thread_.join();
  }

 private:
  void Run() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return !sent_.empty() || finish_by_; });
      if (sent_.empty()) return;
      Sent next = std::move(sent_.front());
      sent_.pop_front();
      lock.unlock();
      Count(next, Await(next), outcome_);
    }
  }
  gpusched::Result<gpusched::JobReport> Await(Sent& sent) {
    for (;;) {
      auto report = sent.submission.Wait(std::chrono::milliseconds(100));
      if (report.status().reason() != gpusched::reason::kWaitTimedOut) return report;
      const std::lock_guard<std::mutex> lock(mutex_);
      if (finish_by_ && Clock::now() > *finish_by_) return report;
    }
  }

  Outcome& outcome_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Sent> sent_;
  std::optional<Clock::time_point> finish_by_;
  std::thread thread_;
};

}  // namespace

Outcome RunOpenLoop(const Arguments& arguments, gpusched::Session& session,
                    const gpusched::Template& request) {
  std::mt19937_64 random(arguments.seed);
  std::exponential_distribution<double> gap(arguments.rate);
  Outcome sender, collected;
  Collector collector(collected);
  const Clock::time_point start = Clock::now(), end = start + arguments.length;
  Clock::time_point next = start;
  while (sender.broke_off.ok()) {
    next += gpusched::Duration(static_cast<std::int64_t>(gap(random) * 1e9));
    if (next > end) break;
    std::this_thread::sleep_until(next);
    std::optional<Sent> sent = Send(session, request, next, gpusched::WhenFull::kFail, sender);
    if (sent) collector.Add(std::move(*sent));
  }
  collector.Finish();
  collected.elapsed = Clock::now() - start;
  collected.sent = sender.sent;
  collected.refused = sender.refused;
  if (!sender.first_error.ok()) collected.first_error = sender.first_error;
  if (!sender.broke_off.ok()) collected.broke_off = sender.broke_off;
  return collected;
}

Outcome RunClosedLoop(const Arguments& arguments, gpusched::Session& session,
                      const gpusched::Template& request) {
  Outcome outcome;
  std::deque<Sent> out;
  const Clock::time_point start = Clock::now(), end = start + arguments.length;
  const auto count_oldest = [&] {
    const gpusched::Duration patience = end + kGrace - Clock::now();
    Count(out.front(), out.front().submission.Wait(patience), outcome);
    out.pop_front();
  };
  while (outcome.broke_off.ok() && Clock::now() < end) {
    if (out.size() == arguments.outstanding) {
      count_oldest();
      continue;
    }
    std::optional<Sent> sent =
        Send(session, request, Clock::now(), gpusched::WhenFull::kWait, outcome);
    if (sent) out.push_back(std::move(*sent));
  }
  while (!out.empty()) count_oldest();
  outcome.elapsed = Clock::now() - start;
  return outcome;
}

}  // namespace load
