// The conversation of one session: frames out, frames in, and no thread of its own.
//
// Whoever waits reads the stream itself: the first to wait leads, polling the call and handing
// every message to the receiver; others follow, asleep until what they wait for is there or the
// lead is free. Nothing is handed from thread to thread where one thread submits and waits.
//
// Whoever leads keeps a read under way; nobody reads while nobody waits. At most one write is under
// way: messages sent meanwhile share the next frame. Flush makes sure that they leave although
// nobody waits.
//
// What was flushed is sent without another call, whoever leaves. The last to leave sees it off
// first: that takes microseconds, and at most kSeeOffLimit beyond the answer or the deadline.
// Where the daemon takes nothing for so long, the receiver is told that messages are left, and has
// somebody Flush who has the time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "call.h"
#include "gpusched/status.h"
#include "gpusched/v1/session.pb.h"

namespace gpusched::internal {

// A frame takes up further messages until it is this long: longer ones would hold up what follows.
inline constexpr std::size_t kFrameMergeBytes = 1 << 20;
// The wire's own bound.
inline constexpr std::size_t kFrameLimitBytes = 2 << 20;
// A frame that finds room leaves within microseconds; to start somebody who waits for room costs
// less than this.
inline constexpr std::chrono::milliseconds kSeeOffLimit{1};

class Exchange {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // Something a thread can wait for. Done once; guarded by the exchange's lock.
  class Awaited {
   public:
    bool done() const { return done_; }

   private:
    friend class Exchange;
    bool done_ = false;
    std::vector<std::condition_variable*> sleepers_;
  };

  // Called under the lock. Messages may be sent from within, nothing may wait.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    virtual void Receive(v1::ServerMessage& message) = 0;
    // No message follows, none can be sent.
    virtual void Ended(const Status& why) = 0;
    // Everybody leaves and messages are left: somebody has to Flush.
    virtual void LeftUnsent() = 0;
  };

  Exchange(std::unique_ptr<Call> call, Receiver& receiver);
  // No thread may be inside. Cancels the call.
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // The one mutex of a session: it guards this object and the receiver's tables alike, so that a
  // submit and a wait cost one lock each.
  Lock Enter() { return Lock(mutex_); }

  // All below is called under the lock; what takes the Lock releases it while it waits.

  // Takes the message's content. FRAME_TOO_LARGE where no frame could hold it. A Submit is stamped
  // with the time since `called` when it is written. SESSION_CLOSED after HalfClose.
  Status Send(v1::ClientMessage& message, Deadline called = {});
  // Returns when all that was sent is on its way, or another thread sees to it, or `unless` is
  // done.
  void Flush(Lock& lock, const Awaited* unless = nullptr);
  // Messages wait for the call to take them, and nobody sees to it.
  bool left_unsent() const { return !leading_ && unsent(); }

  // True when it is done, false at the deadline. Leads where nobody does.
  bool Await(Lock& lock, Awaited& what, Deadline deadline);
  void Complete(Awaited& what);
  // Receives what has arrived, without waiting.
  void Poll(Lock& lock);

  // Says that nothing more will be sent; the daemon ends the call then.
  void HalfClose();
  void Cancel() { call_->Cancel(); }
  // Over, whatever became of the call: one that is cancelled ends only when the socket takes what
  // is being written, and a daemon that is stopped takes nothing. The call is never freed.
  void Abandon(Lock& lock, const Status& why);
  bool over() const { return over_; }

  // Destroyed once the lock is free: what belongs to a caller may take the lock in its destructor.
  void Bury(std::shared_ptr<void> what);

 private:
  struct Outgoing {
    v1::ClientFrame frame;
    std::size_t bytes = 0;
    std::vector<std::pair<v1::Submit*, Deadline>> stamps;
  };

  template <typename Until>
  void Lead(Lock& lock, Until until, Deadline deadline);
  template <typename Until>
  void Turn(Lock& lock, Until until, Deadline deadline);
  bool unsent() const {
    return !over_ && (writing_ || !(outbox_.empty() || broken_ || no_more_reads_));
  }
  void Handle(Call::Happened happened);
  void StartWriteIfDue();
  void WakeFollower();
  void EmptyGrave(Lock& lock);

  std::mutex mutex_;
  std::unique_ptr<Call> call_;
  Receiver& receiver_;

  std::deque<std::unique_ptr<Outgoing>> outbox_;
  std::unique_ptr<Outgoing> spare_;  // kept for its allocations
  v1::ServerFrame arrived_;

  bool leading_ = false;
  std::list<std::condition_variable*> followers_;  // all that sleep, first come first to lead
  bool writing_ = false;
  bool reading_ = false;
  bool half_close_due_ = false;
  bool half_closing_ = false;
  bool half_closed_ = false;  // or about to be: nothing can be written any more
  bool no_more_reads_ = false;
  bool broken_ = false;  // a write failed: the end will be read
  bool finished_ = false;
  bool over_ = false;
  std::vector<std::shared_ptr<void>> grave_;
};

}  // namespace gpusched::internal
