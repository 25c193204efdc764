// A session's callbacks: the one thread of the library, there only where somebody asked for
// on_done, or where a daemon that takes nothing would have held up whoever leaves.
#include <utility>

#include "stream.h"

namespace gpusched::internal {

void Stream::StartCallbacks() {
  if (callback_thread_.joinable()) {
    callback_wanted_.notify_one();
    return;
  }
  // The thread keeps the stream: a callback may destroy the last handle.
  callback_thread_ = std::thread([self = shared_from_this()] { self->RunCallbacks(); });
}

void Stream::LeftUnsent() {
  // A greeting that is left is given up with its session, and one that is over has nothing to send.
  if (welcomed_.done() && !over_.done() && !callbacks_stopping_) StartCallbacks();
}

void Stream::RunCallbacks() {
  Exchange::Lock lock = exchange_.Enter();
  for (;;) {
    if (!callbacks_.empty()) {
      std::shared_ptr<JobRecord> job = std::move(callbacks_.front());
      callbacks_.pop_front();
      lock.unlock();
      job->on_done(job->Outcome());
      job->on_done = nullptr;  // what it captured goes here, not under the lock
      job.reset();
      lock.lock();
    } else if (over_.done() || callbacks_stopping_) {
      return;
    } else if (callbacks_outstanding_ == 0 && !exchange_.left_unsent()) {
      // It leads only where a callback is due or something unsent: else the threads that wait read
      // for themselves.
      callback_wanted_.wait(lock);
    } else {
      Exchange::Awaited due;
      callback_due_ = &due;
      if (callbacks_outstanding_ == 0) {
        exchange_.Flush(lock, &due);
      } else {
        exchange_.Await(lock, due, kNoDeadline);
      }
      callback_due_ = nullptr;
    }
  }
}

void Stream::StopCallbacks() {
  std::thread thread;
  {
    const Exchange::Lock lock = exchange_.Enter();
    callbacks_stopping_ = true;
    callback_wanted_.notify_all();
    thread = std::move(callback_thread_);
  }
  if (!thread.joinable()) return;
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();  // a callback closes its own session: the thread ends when it returns
  } else {
    thread.join();
  }
}

}  // namespace gpusched::internal
