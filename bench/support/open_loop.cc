// One thread sends on time; the library's callbacks note what became of each request.
#include "support/open_loop.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace gpusched::bench {
namespace {

using Clock = std::chrono::steady_clock;

Fate FateOf(const Result<JobReport>& result) {
  if (!result.ok()) {
    const StatusCode code = result.status().code();
    const bool refused = code == StatusCode::kInvalidArgument || code == StatusCode::kNotFound ||
                         code == StatusCode::kResourceExhausted;
    return refused ? Fate::kRefused : Fate::kFailed;
  }
  switch (result->outcome) {
    case Outcome::kDone: return Fate::kAnswered;
    case Outcome::kCancelled: return Fate::kCancelled;
    case Outcome::kSkipped: return Fate::kCancelled;
  }
  return Fate::kFailed;
}

}  // namespace

// Shared with the callbacks, which may still be on their way when the load is gone.
class OpenLoop::Generator : public std::enable_shared_from_this<OpenLoop::Generator> {
 public:
  Generator(Arrivals arrivals, SteadyTime start, Submit submit, SubmitOptions options)
      : arrivals_(std::move(arrivals)),
        start_(start),
        submit_(std::move(submit)),
        options_(std::move(options)) {
    options_.when_full = WhenFull::kFail;
  }

  void Launch() {
    thread_ = std::thread([this] { SendAll(); });
  }

  void CancelBacklog() {
    std::unique_lock lock(mutex_);
    const std::size_t end = sent_.size();
    for (Sent& sent : sent_) {
      if (sent.request.fate == Fate::kOutstanding && sent.submission) {
        // A lost session has ended them already, so there is nobody to tell of a failure.
        (void)sent.submission->Cancel();
      }
    }
    changed_.wait(lock, [&] { return KnownBefore(end); });
  }

  void Finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return all_sent_ && KnownBefore(sent_.size()); });
  }

  void Stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
    CancelBacklog();
    // The handles go here, not with the last callback: that runs on the library's own thread.
    std::lock_guard lock(mutex_);
    for (Sent& sent : sent_) sent.submission.reset();
    submit_ = nullptr;
  }

  std::vector<Request> Between(SteadyTime from, SteadyTime to) const {
    std::lock_guard lock(mutex_);
    std::vector<Request> result;
    for (const Sent& sent : sent_) {
      if (sent.request.due >= from && sent.request.due < to) result.push_back(sent.request);
    }
    return result;
  }

 private:
  struct Sent {
    Request request;
    std::optional<Submission> submission;
  };

  void SendAll() {
    for (const Arrival& arrival : arrivals_) {
      const SteadyTime due = start_ + arrival.at;
      std::size_t index = 0;
      {
        std::unique_lock lock(mutex_);
        if (changed_.wait_until(lock, due, [this] { return stopping_; })) break;
        index = sent_.size();
        sent_.emplace_back();
        Request& request = sent_.back().request;
        request.due = due;
        request.work = arrival.work;
        request.behind = Clock::now() - due;
      }
      Send(arrival, index);
    }
    std::lock_guard lock(mutex_);
    all_sent_ = true;
    changed_.notify_all();
  }

  void Send(const Arrival& arrival, std::size_t index) {
    SubmitOptions options = options_;
    options.on_done = [self = shared_from_this(), index](const Result<JobReport>& result) {
      self->Note(index, result);
    };
    Result<Submission> submission = submit_(arrival, options);
    if (!submission.ok()) {
      Note(index, submission.status());
      return;
    }
    std::lock_guard lock(mutex_);
    sent_[index].submission.emplace(*std::move(submission));
  }

  void Note(std::size_t index, const Result<JobReport>& result) {
    const SteadyTime now = Clock::now();
    std::lock_guard lock(mutex_);
    Request& request = sent_[index].request;
    request.latency = now - request.due;
    request.fate = FateOf(result);
    if (result.ok()) request.report = *result;
    changed_.notify_all();
  }

  bool KnownBefore(std::size_t end) const {
    while (known_ < end && sent_[known_].request.fate != Fate::kOutstanding) ++known_;
    return known_ >= end;
  }

  const Arrivals arrivals_;
  const SteadyTime start_;
  Submit submit_;
  SubmitOptions options_;

  // Guards what follows: the sending thread, callbacks and whoever asks all touch it.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Sent> sent_;
  mutable std::size_t known_ = 0;  // all before it have met their fate
  bool stopping_ = false;
  bool all_sent_ = false;
  std::thread thread_;
};

OpenLoop::OpenLoop(Arrivals arrivals, SteadyTime start, Submit submit, SubmitOptions options)
    : generator_(std::make_shared<Generator>(std::move(arrivals), start, std::move(submit),
                                             std::move(options))) {
  generator_->Launch();
}

OpenLoop::~OpenLoop() { generator_->Stop(); }
void OpenLoop::CancelBacklog() { generator_->CancelBacklog(); }
void OpenLoop::Finish() { generator_->Finish(); }

std::vector<Request> OpenLoop::Between(SteadyTime from, SteadyTime to) const {
  return generator_->Between(from, to);
}
std::vector<Request> OpenLoop::All() const {
  return generator_->Between(SteadyTime::min(), SteadyTime::max());
}

double OnTime(const std::vector<Request>& requests, Duration target) {
  if (requests.empty()) return 1;
  const auto on_time =
      std::count_if(requests.begin(), requests.end(), [target](const Request& request) {
        return request.fate == Fate::kAnswered && request.latency <= target;
      });
  return static_cast<double>(on_time) / static_cast<double>(requests.size());
}

std::vector<Measured> Latencies(const std::vector<Request>& requests) {
  std::vector<Measured> result;
  result.reserve(requests.size());
  for (const Request& request : requests) {
    switch (request.fate) {
      case Fate::kAnswered: result.push_back({.value = request.latency}); break;
      case Fate::kOutstanding:
      case Fate::kCancelled: result.push_back({.value = request.latency, .at_least = true}); break;
      case Fate::kRefused:
      case Fate::kFailed: result.push_back({.value = Duration::max(), .at_least = true}); break;
    }
  }
  return result;
}

}  // namespace gpusched::bench
