// The conversation of one session: leading, following, merging of frames.
#include "exchange.h"

#include <algorithm>
#include <string>

#include "gpusched/reasons.h"

namespace gpusched::internal {

Exchange::Exchange(std::unique_ptr<Call> call, Receiver& receiver)
    : call_(std::move(call)), receiver_(receiver) {}

Exchange::~Exchange() = default;

Status Exchange::Send(v1::ClientMessage& message, Deadline called) {
  if (half_close_due_ || half_closed_) {
    return Status(StatusCode::kCancelled, reason::kSessionClosed, "the session is being closed");
  }
  const std::size_t bytes = message.ByteSizeLong();
  // The frame adds a tag and a length to each message, StartWriteIfDue a time to a Submit.
  constexpr std::size_t kEnvelope = 32;
  if (bytes + kEnvelope > kFrameLimitBytes) {
    return Status(StatusCode::kInvalidArgument, reason::kFrameTooLarge,
                  "a message of " + std::to_string(bytes) + " bytes does not fit a frame of " +
                      std::to_string(kFrameLimitBytes) +
                      ": use fewer operations per job, or smaller module images");
  }
  if (outbox_.empty() || outbox_.back()->bytes + bytes + kEnvelope > kFrameMergeBytes) {
    if (spare_) {
      outbox_.push_back(std::move(spare_));
    } else {
      outbox_.push_back(std::make_unique<Outgoing>());
    }
  }
  Outgoing& last = *outbox_.back();
  v1::ClientMessage* slot = last.frame.add_messages();
  slot->Swap(&message);
  last.bytes += bytes + kEnvelope;
  if (slot->has_submit()) last.stamps.emplace_back(slot->mutable_submit(), called);
  StartWriteIfDue();
  return Status::Ok();
}

void Exchange::StartWriteIfDue() {
  if (writing_ || half_closed_ || broken_ || no_more_reads_) return;
  if (outbox_.empty()) {
    if (!half_close_due_) return;
    half_close_due_ = false;
    half_closing_ = true;
    half_closed_ = true;
    call_->StartHalfClose();
    return;
  }
  std::unique_ptr<Outgoing> first = std::move(outbox_.front());
  outbox_.pop_front();
  if (!first->stamps.empty()) {
    const Deadline now = Clock::now();
    for (auto& [submit, called] : first->stamps) {
      submit->set_client_ns(std::chrono::nanoseconds(now - called).count());
    }
  }
  writing_ = true;
  call_->StartWrite(first->frame);
  first->frame.Clear();
  first->stamps.clear();
  first->bytes = 0;
  spare_ = std::move(first);
}

void Exchange::Flush(Lock& lock, const Awaited* unless) {
  // A leader sees the write done, starts the next, and does not leave before the last.
  if (leading_) return;
  Lead(
      lock, [&] { return !unsent() || (unless != nullptr && unless->done_); }, kNoDeadline);
}

bool Exchange::Await(Lock& lock, Awaited& what, Deadline deadline) {
  if (!what.done_ && leading_) {
    std::condition_variable wake;
    const auto place = followers_.insert(followers_.end(), &wake);
    what.sleepers_.push_back(&wake);
    while (!what.done_ && leading_) {
      if (deadline == kNoDeadline) {
        wake.wait(lock);
      } else if (wake.wait_until(lock, deadline) == std::cv_status::timeout) {
        break;
      }
    }
    followers_.erase(place);
    std::erase(what.sleepers_, &wake);
  }
  // Also where it is done: the lead it may have been woken for is not lost, nor what is unsent.
  if (!leading_)
    Lead(
        lock, [&what] { return what.done_; }, deadline);
  return what.done_;
}

void Exchange::Complete(Awaited& what) {
  what.done_ = true;
  for (std::condition_variable* sleeper : what.sleepers_) sleeper->notify_one();
}

void Exchange::Poll(Lock& lock) {
  if (leading_ || over_) return;
  Lead(
      lock, [] { return false; }, Deadline{});  // long past
}

void Exchange::HalfClose() {
  if (half_closed_) return;
  half_close_due_ = true;
  StartWriteIfDue();
}

void Exchange::Abandon(Lock& lock, const Status& why) {
  if (over_) return;
  over_ = broken_ = no_more_reads_ = true;
  outbox_.clear();
  if (leading_) {
    std::condition_variable wake;
    const auto place = followers_.insert(followers_.begin(), &wake);
    call_->Wake();
    wake.wait(lock, [this] { return !leading_; });
    followers_.erase(place);
  }
  static_cast<void>(call_.release());
  receiver_.Ended(why);
  WakeFollower();
}

void Exchange::Bury(std::shared_ptr<void> what) { grave_.push_back(std::move(what)); }

template <typename Until>
void Exchange::Lead(Lock& lock, Until until, Deadline deadline) {
  leading_ = true;
  Turn(lock, until, deadline);
  // Others may have left because this thread led. A follower leads next, and leaves in this way.
  if (followers_.empty() && unsent()) {
    const auto seen_off = [this] { return !unsent() || !followers_.empty(); };
    Turn(lock, seen_off, Clock::now() + kSeeOffLimit);
  }
  leading_ = false;
  WakeFollower();
  if (followers_.empty() && unsent()) receiver_.LeftUnsent();
}

template <typename Until>
void Exchange::Turn(Lock& lock, Until until, Deadline deadline) {
  while (!until() && !over_) {
    if (!reading_ && !no_more_reads_) {
      reading_ = true;
      call_->StartRead(&arrived_);
    }
    lock.unlock();
    const Call::Happened happened = call_->Next(deadline);
    lock.lock();
    if (happened.event == Call::Event::kTimedOut) break;
    Handle(happened);
    EmptyGrave(lock);
  }
}

void Exchange::Handle(Call::Happened happened) {
  switch (happened.event) {
    case Call::Event::kRead:
      reading_ = false;
      if (happened.ok) {
        for (v1::ServerMessage& message : *arrived_.mutable_messages()) receiver_.Receive(message);
        return;
      }
      no_more_reads_ = true;
      call_->StartFinish();
      return;
    case Call::Event::kWritten:
      writing_ = false;
      if (!happened.ok) broken_ = true;
      StartWriteIfDue();
      break;
    case Call::Event::kHalfClosed: half_closing_ = false; break;
    case Call::Event::kFinished: finished_ = true; break;
    case Call::Event::kTimedOut: return;
  }
  if (finished_ && !writing_ && !half_closing_ && !over_) {
    over_ = true;
    outbox_.clear();
    receiver_.Ended(call_->outcome());
  }
}

void Exchange::WakeFollower() {
  if (!followers_.empty()) followers_.front()->notify_one();
}

void Exchange::EmptyGrave(Lock& lock) {
  if (grave_.empty()) return;
  std::vector<std::shared_ptr<void>> dead;
  dead.swap(grave_);
  lock.unlock();
  dead.clear();
  lock.lock();
}

}  // namespace gpusched::internal
