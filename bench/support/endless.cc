// One thread waits for the oldest job and submits the next.
#include "support/endless.h"

#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace gpusched::bench {

class Endless::Loop {
 public:
  Loop(int outstanding, Submit submit) : outstanding_(outstanding), submit_(std::move(submit)) {
    thread_ = std::thread([this] { Run(); });
  }

  ~Loop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      // What waits need not run any more; a lost session has ended it already.
      for (Submission& submission : waiting_) (void)submission.Cancel();
    }
    thread_.join();
  }

  std::vector<JobReport> DoneBetween(Duration from, Duration to) const {
    std::lock_guard lock(mutex_);
    std::vector<JobReport> result;
    for (const JobReport& report : done_) {
      if (report.ended >= from && report.ended < to) result.push_back(report);
    }
    return result;
  }

  Status status() const {
    std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  void Run() {
    while (Refill()) {
      // Only this thread takes from the front, so it stays in place while others look at the list.
      const Result<JobReport> report = waiting_.front().Wait();
      std::lock_guard lock(mutex_);
      waiting_.pop_front();
      if (!report.ok()) {
        if (status_.ok()) status_ = report.status();
        stopping_ = true;
      } else if (report->outcome == Outcome::kDone) {
        done_.push_back(*report);
      }
    }
  }

  // False when the load is stopping and nothing is outstanding.
  bool Refill() {
    std::lock_guard lock(mutex_);
    while (!stopping_ && static_cast<int>(waiting_.size()) < outstanding_) {
      Result<Submission> submission = submit_();
      if (submission.ok()) {
        waiting_.push_back(*std::move(submission));
      } else {
        status_ = submission.status();
        stopping_ = true;
      }
    }
    return !waiting_.empty();
  }

  const int outstanding_;
  Submit submit_;

  // Guards what follows: the loop's thread and whoever asks or stops.
  mutable std::mutex mutex_;
  std::deque<Submission> waiting_;
  std::vector<JobReport> done_;
  Status status_;
  bool stopping_ = false;
  std::thread thread_;
};

Endless::Endless(int outstanding, Submit submit)
    : loop_(std::make_unique<Loop>(outstanding, std::move(submit))) {}
Endless::~Endless() = default;

std::vector<JobReport> Endless::DoneBetween(SteadyTime from, SteadyTime to) const {
  return loop_->DoneBetween(from.time_since_epoch(), to.time_since_epoch());
}
Status Endless::status() const { return loop_->status(); }

}  // namespace gpusched::bench
