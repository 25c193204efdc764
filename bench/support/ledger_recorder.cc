// One thread reads batches until the feed is stopped.
#include "support/ledger_recorder.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace gpusched::bench {

class LedgerRecorder::Follower {
 public:
  explicit Follower(std::unique_ptr<admin::Feed<admin::SliceBatch>> feed) : feed_(std::move(feed)) {
    thread_ = std::thread([this] { Follow(); });
  }
  ~Follower() {
    feed_->Stop();
    thread_.join();
  }

  bool AwaitRecorded(int device, nanoseconds time, nanoseconds within) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, within, [&] { return latest_end_[device] > time; });
  }
  std::vector<admin::Slice> Slices() const {
    std::lock_guard lock(mutex_);
    return slices_;
  }
  std::uint64_t dropped() const {
    std::lock_guard lock(mutex_);
    return dropped_;
  }

 private:
  void Follow() {
    while (true) {
      Result<admin::SliceBatch> batch = feed_->Next();
      if (!batch.ok()) return;  // stopped, or the daemon went: what is recorded stays
      std::lock_guard lock(mutex_);
      dropped_ += batch->dropped;
      for (const admin::Slice& slice : batch->slices) {
        nanoseconds& latest = latest_end_[slice.device];
        latest = std::max(latest, slice.ended);
        slices_.push_back(slice);
      }
      changed_.notify_all();
    }
  }

  const std::unique_ptr<admin::Feed<admin::SliceBatch>> feed_;
  // Guards what follows: the following thread writes, the bench reads.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<admin::Slice> slices_;
  std::map<int, nanoseconds> latest_end_;
  std::uint64_t dropped_ = 0;
  std::thread thread_;
};

Result<std::unique_ptr<LedgerRecorder>> LedgerRecorder::Start(admin::AdminClient& admin) {
  Result<std::unique_ptr<admin::Feed<admin::SliceBatch>>> feed = admin.WatchSlices();
  if (!feed.ok()) return feed.status();
  return std::unique_ptr<LedgerRecorder>(
      new LedgerRecorder(std::make_unique<Follower>(*std::move(feed))));
}

LedgerRecorder::LedgerRecorder(std::unique_ptr<Follower> follower)
    : follower_(std::move(follower)) {}
LedgerRecorder::~LedgerRecorder() = default;

bool LedgerRecorder::AwaitRecorded(int device, nanoseconds time, nanoseconds within) {
  return follower_->AwaitRecorded(device, time, within);
}
std::vector<admin::Slice> LedgerRecorder::Slices() const { return follower_->Slices(); }
std::uint64_t LedgerRecorder::dropped() const { return follower_->dropped(); }

Ledger LedgerRecorder::LedgerOf(int device) const {
  Ledger ledger;
  for (const admin::Slice& slice : follower_->Slices()) {
    if (slice.device != device) continue;
    ledger.Add({.session = slice.session,
                .started = slice.started,
                .ended = slice.ended,
                .charged = slice.charged});
  }
  return ledger;
}

}  // namespace gpusched::bench
