// Plays the executor for a device that is polled: calls it when it asked to be called.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "device/device.h"
#include "device/device_clock.h"

namespace gpusched::device {

// One call at a time, as under the executor's baton, and a look at the device after each.
class PolledDevice final : public Device {
 public:
  explicit PolledDevice(std::unique_ptr<Device> device)
      : device_(std::move(device)), thread_([this] { Run(); }) {}
  ~PolledDevice() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const DeviceInfo& info() const override { return device_->info(); }
  Status OpenSession(SessionId session, Quota quota) override {
    const std::lock_guard lock(mutex_);
    return device_->OpenSession(session, quota);
  }
  void CloseSession(SessionId session, Ticket ticket) override {
    const std::lock_guard lock(mutex_);
    device_->CloseSession(session, ticket);
  }
  std::uint64_t WaveBlocks(const LaunchCommand& launch) const override {
    const std::lock_guard lock(mutex_);
    return device_->WaveBlocks(launch);
  }
  void Prepare(Ticket ticket, Preparation preparation) override {
    const std::lock_guard lock(mutex_);
    device_->Prepare(ticket, std::move(preparation));
  }
  void Start(Ticket ticket, const Command& command) override {
    const std::lock_guard lock(mutex_);
    device_->Start(ticket, command);
    changed_.notify_all();
  }
  void Interrupt(Ticket ticket) override {
    const std::lock_guard lock(mutex_);
    device_->Interrupt(ticket);
  }
  // The turn that a preparation's end brings.
  void Look() { changed_.notify_all(); }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    while (!closing_) {
      const Duration pause = device_->Poll(DeviceNow());
      // A turn comes now and then whatever the device asked for.
      changed_.wait_for(lock, std::min<Duration>(pause, std::chrono::milliseconds(2)));
    }
  }

  std::unique_ptr<Device> device_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace gpusched::device
