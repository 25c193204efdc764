// An executor on a virtual device without costs, and streams whose messages the test reads.
#pragma once

#include <utility>  // Boost 1.74's asio forgets it under C++20.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "catalog.h"
#include "device/backends.h"
#include "executor/clock.h"
#include "executor/executor.h"

namespace gpusched::executor {

inline constexpr std::chrono::seconds kSoon{30};

class TestPort final : public SessionPort {
 public:
  void Send(std::vector<ServerMessage>& messages) override {
    const std::lock_guard lock(mutex_);
    for (ServerMessage& message : messages) messages_.push_back(std::move(message));
    messages.clear();
    changed_.notify_all();
  }
  void FrameHandled() override {
    const std::lock_guard lock(mutex_);
    frame.messages.clear();
    handled_ = true;
    changed_.notify_all();
  }

  // Brings one frame and waits until it was handled.
  template <typename... Messages>
  void Say(Executor& executor, const std::shared_ptr<TestPort>& self, Messages... messages) {
    frame.received = Now();
    (frame.messages.emplace_back(std::move(messages)), ...);
    handled_ = false;
    executor.Bring(FrameArrived{self});
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, kSoon, [&] { return handled_; }));
  }
  // The first message of its kind, taken out; nothing after kSoon.
  template <typename Message>
  std::optional<Message> Take() {
    std::unique_lock lock(mutex_);
    std::optional<Message> found;
    changed_.wait_for(lock, kSoon, [&] {
      for (auto at = messages_.begin(); at != messages_.end(); ++at) {
        if (auto* message = std::get_if<Message>(&*at)) {
          found = std::move(*message);
          messages_.erase(at);
          return true;
        }
      }
      return false;
    });
    return found;
  }
  template <typename Message>
  std::size_t Count() {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const ServerMessage& message : messages_)
      count += std::holds_alternative<Message>(message);
    return count;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ServerMessage> messages_;
  bool handled_ = false;
};

class Bench {
 public:
  explicit Bench(std::unique_ptr<Policy> policy = nullptr,
                 std::function<void(std::uint32_t, core::PolicyEjected)> on_ejected = {}) {
    std::unique_ptr<Mailbox> mailbox = std::make_unique<Mailbox>();
    auto devices =
        device::OpenDevices({.kind = "virtual", .cost_file = ZERO_COSTS},
                            [&](std::size_t, const device::DeviceInfo&) { return mailbox.get(); });
    if (!devices.ok()) throw std::runtime_error(devices.status().ToString());
    if (policy == nullptr) policy = BuildPolicy("round_robin", "").policy;
    executor_ = std::make_unique<Executor>(Executor::Options{.index = 0,
                                                             .limits = {},
                                                             .sessions = {},
                                                             .session_serials = &serials_,
                                                             .on_ejected = std::move(on_ejected)},
                                           std::move(mailbox), std::move(devices->front()),
                                           core::PolicySpec{"under test", "", 1, "test"},
                                           std::move(policy), events);
    thread_ = std::thread([this] { events.run(); });
  }
  ~Bench() {
    executor_->CloseAll(Status(StatusCode::kUnavailable, "DRAINING", "the test is over"));
    AwaitEmpty();
    events.stop();  // the executor's timer waits for ever
    thread_.join();
    executor_.reset();
  }

  Executor& executor() { return *executor_; }
  std::shared_ptr<TestPort> Open(Hello hello = {}) {
    if (hello.memory_bytes == 0) hello.memory_bytes = 1 << 30;
    executor_->Reserve(hello.memory_bytes);
    auto port = std::make_shared<TestPort>();
    port->Say(*executor_, port, std::move(hello));
    return port;
  }
  bool AwaitEmpty() {
    const Time end = Now() + kSoon;
    while (executor_->load().sessions > 0 && Now() < end) std::this_thread::yield();
    return executor_->load().sessions == 0;
  }

  boost::asio::io_context events;

 private:
  std::atomic<std::uint64_t> serials_{0};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> working_{
      events.get_executor()};
  std::unique_ptr<Executor> executor_;
  std::thread thread_;
};

inline LoadModule Kernels(std::uint64_t id) {
  return {id,
          {{device::Image::Format::kVirtual,
            "kernel quick time_per_block=0ns\nkernel long time_per_block=10ms\n"
            "kernel takes time_per_block=0ns parameters=buffer,u32\n"}}};
}

inline Submit JobOf(std::uint64_t id, std::vector<Operation> operations) {
  Submit submit;
  submit.job = id;
  submit.operations = std::move(operations);
  return submit;
}

inline Launch LaunchOf(std::uint64_t module, std::string kernel, std::uint32_t blocks = 1) {
  Launch launch;
  launch.module = module;
  launch.kernel = std::move(kernel);
  launch.grid = {blocks, 1, 1};
  return launch;
}

}  // namespace gpusched::executor
