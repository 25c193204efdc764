// Who sees off what was flushed, told on a call that a script plays.
#include "exchange.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace gpusched::internal {

using std::chrono_literals::operator""s;

// What the script says happens, in order; what it does not say waits.
class Call::Rpc {
 public:
  void Happen(Happened happened) {
    const std::lock_guard<std::mutex> lock(mutex_);
    happened_.push_back(happened);
    changed_.notify_all();
  }
  // Takes the write under way, and all that follow at once.
  void TakeWrites() {
    bool under_way = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      takes_ = true;
      under_way = std::exchange(write_waits_, false);
    }
    if (under_way) Happen({Event::kWritten, true});
  }
  int writes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return writes_;
  }
  // Somebody waits for what happens.
  bool AwaitLead() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, 30s, [&] { return led_; });
  }

  void Write() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++writes_;
    if (!takes_) {
      write_waits_ = true;
      return;
    }
    lock.unlock();
    Happen({Event::kWritten, true});
  }
  Happened Next(Deadline deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    led_ = true;
    changed_.notify_all();
    const auto something = [&] { return !happened_.empty(); };
    if (deadline == kNoDeadline) {
      changed_.wait(lock, something);
    } else if (!changed_.wait_until(lock, deadline, something)) {
      return {Event::kTimedOut, false};
    }
    const Happened next = happened_.front();
    happened_.pop_front();
    return next;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Happened> happened_;
  int writes_ = 0;
  bool takes_ = false, write_waits_ = false, led_ = false;
};

Call::Call(std::unique_ptr<Rpc> rpc) : rpc_(std::move(rpc)) {}
Call::~Call() = default;
void Call::StartRead(v1::ServerFrame* frame) {
  frame->Clear();
  frame->add_messages();
}
void Call::StartWrite(const v1::ClientFrame&) { rpc_->Write(); }
void Call::StartHalfClose() { rpc_->Happen({Event::kHalfClosed, true}); }
void Call::StartFinish() { rpc_->Happen({Event::kFinished, true}); }
void Call::Cancel() { rpc_->Happen({Event::kRead, false}); }
void Call::Wake() { rpc_->Happen({Event::kTimedOut, false}); }
Call::Happened Call::Next(Deadline deadline) { return rpc_->Next(deadline); }
Status Call::outcome() const { return Status::Ok(); }

namespace {

constexpr Call::Happened kAnswer{Call::Event::kRead, true};

// Every message that arrives completes what is waited for.
class Conversation : public Exchange::Receiver {
 public:
  Conversation() {
    auto rpc = std::make_unique<Call::Rpc>();
    script = rpc.get();
    exchange.emplace(std::make_unique<Call>(std::move(rpc)), *this);
  }
  void Receive(v1::ServerMessage&) override { exchange->Complete(answered); }
  void Ended(const Status&) override {}
  void LeftUnsent() override { ++left_unsent; }

  void Send(Exchange::Lock&) {
    v1::ClientMessage message;
    message.mutable_goodbye();
    EXPECT_TRUE(exchange->Send(message).ok());
  }
  // As a call that sends and returns.
  void SendAndFlush() {
    Exchange::Lock lock = exchange->Enter();
    Send(lock);
    exchange->Flush(lock);
  }
  std::future<bool> Wait() {
    auto waits = std::async(std::launch::async, [this] {
      Exchange::Lock lock = exchange->Enter();
      return exchange->Await(lock, answered, kNoDeadline);
    });
    EXPECT_TRUE(script->AwaitLead());
    return waits;
  }

  Call::Rpc* script = nullptr;
  std::optional<Exchange> exchange;
  Exchange::Awaited answered;
  int left_unsent = 0;
};

TEST(Exchange, WhoeverIsAnsweredSeesOffWhatOthersFlushed) {
  Conversation c;
  std::future<bool> leader = c.Wait();
  c.SendAndFlush();
  c.SendAndFlush();  // waits behind the first
  EXPECT_EQ(c.script->writes(), 1);
  {
    // Both happen before the leader looks, the answer first.
    const Exchange::Lock lock = c.exchange->Enter();
    c.script->Happen(kAnswer);
    c.script->TakeWrites();
  }
  EXPECT_TRUE(leader.get());
  EXPECT_EQ(c.script->writes(), 2);
  EXPECT_FALSE(c.exchange->left_unsent());
  EXPECT_EQ(c.left_unsent, 0);
}

TEST(Exchange, APollTellsOfWhatTheDaemonDoesNotTake) {
  Conversation c;
  Exchange::Lock lock = c.exchange->Enter();
  c.Send(lock);
  c.exchange->Poll(lock);
  EXPECT_EQ(c.left_unsent, 1);
  c.Send(lock);
  c.script->TakeWrites();
  c.exchange->Poll(lock);
  EXPECT_EQ(c.left_unsent, 1);
  EXPECT_EQ(c.script->writes(), 2);
}

TEST(Exchange, AnAbandonedCallHoldsNobody) {
  Conversation c;
  std::future<bool> leader = c.Wait();
  c.SendAndFlush();
  {
    Exchange::Lock lock = c.exchange->Enter();
    c.exchange->Abandon(lock, Status(StatusCode::kUnavailable, "GIVEN_UP", "by the test"));
    EXPECT_TRUE(c.exchange->over());
    EXPECT_FALSE(c.exchange->left_unsent());
  }
  EXPECT_FALSE(leader.get());
}

TEST(Exchange, ADaemonThatTakesNothingHoldsNobodyBeyondTheDeadline) {
  Conversation c;
  {
    Exchange::Lock lock = c.exchange->Enter();
    c.Send(lock);
    c.Send(lock);
    EXPECT_FALSE(c.exchange->Await(lock, c.answered, Clock::now()));
    EXPECT_EQ(c.left_unsent, 1);
    EXPECT_TRUE(c.exchange->left_unsent());
  }
  // Whoever was told has the time.
  auto flushed = std::async(std::launch::async, [&c] {
    Exchange::Lock lock = c.exchange->Enter();
    c.exchange->Flush(lock);
  });
  c.script->TakeWrites();
  flushed.get();
  EXPECT_EQ(c.script->writes(), 2);
}

TEST(Exchange, AFollowerThatWasAnsweredSeesOffToo) {
  Conversation c;
  std::future<bool> leader = c.Wait(), follower = c.Wait();
  c.SendAndFlush();
  c.SendAndFlush();
  {
    const Exchange::Lock lock = c.exchange->Enter();
    c.script->Happen(kAnswer);
    c.script->TakeWrites();
  }
  EXPECT_TRUE(leader.get());
  EXPECT_TRUE(follower.get());
  EXPECT_EQ(c.script->writes(), 2);
}

TEST(Exchange, WhatHasOtherThingsToDoFlushesUntilThen) {
  Conversation c;
  auto flushed = std::async(std::launch::async, [&c] {
    Exchange::Lock lock = c.exchange->Enter();
    c.Send(lock);
    c.exchange->Flush(lock, &c.answered);
  });
  EXPECT_TRUE(c.script->AwaitLead());
  c.script->Happen(kAnswer);
  flushed.get();
  EXPECT_EQ(c.left_unsent, 1);
}

}  // namespace
}  // namespace gpusched::internal
