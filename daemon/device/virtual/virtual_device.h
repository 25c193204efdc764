// A device that computes nothing but takes exactly the time the cost file says, for everything
// measured.
//
// It keeps the bytes of buffers (copies move them, fills set them), and completions carry the times
// of its timeline even when its timer wakes late. A command of length zero with nothing before it
// completes within Start; nothing is ever reported before its end has passed.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

#include "device/device.h"
#include "device/preparation_line.h"
#include "device/session_table.h"
#include "device/virtual/lazy_bytes.h"
#include "device/virtual/timeline.h"
#include "device/virtual/virtual_module.h"

namespace gpusched::device {

// `index` from 0; the uuid is "virtual-<index>". memory_bytes 0: kVirtualMemory.
inline constexpr std::uint64_t kVirtualMemory = std::uint64_t{16} << 30;
DeviceInfo VirtualDeviceInfo(int index, std::uint64_t memory_bytes);

// A file descriptor of a timer that one thread waits for and any thread may set, without waking it.
class WakeTimer {
 public:
  WakeTimer();
  ~WakeTimer();
  WakeTimer(const WakeTimer&) = delete;
  WakeTimer& operator=(const WakeTimer&) = delete;

  void Set(Time);  // a time that has passed wakes at once
  void Wait();     // until the time last set

 private:
  int descriptor_;
};

class VirtualDevice final : public Device {
 public:
  // `stream` tells devices of one seed apart.
  VirtualDevice(DeviceInfo, const Costs&, std::uint64_t stream, CompletionSink&);
  ~VirtualDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Status OpenSession(SessionId, Quota) override;
  void CloseSession(SessionId, Ticket) override;
  void Prepare(Ticket, Preparation) override;
  void Start(Ticket, const Command&) override;

 private:
  // A command on its way: when it ends and what it does to memory then.
  struct Pending {
    Ticket ticket{};
    Timeline::Span span{};
    std::byte* target = nullptr;        // nullptr: it moves nothing
    const std::byte* source = nullptr;  // nullptr with a target: a fill
    std::uint64_t bytes = 0;
    std::uint8_t value = 0;
    Status error;
  };

  // What the command asks for; fills in the rest of `pending`. With mutex_ held, as all these.
  Asked Resolve(const Command&, Pending&);
  Asked ResolveLaunch(const LaunchCommand&, Pending&);
  std::byte* Range(SessionId, BufferId, std::uint64_t offset, std::uint64_t first,
                   std::uint64_t count, std::uint64_t total, Status& error);

  Prepared Carry(Ticket, const Preparation&);
  Status Carry(const LoadModule&, ModuleInfo&);
  Status Carry(const UnloadModule&);
  Status Carry(const Allocate&);
  Status Carry(const Free&);

  void Finish(const Pending&);  // moves the bytes and reports; without mutex_
  void RunTimer();
  void ReportDue(std::unique_lock<std::mutex>&);

  const DeviceInfo info_;
  CompletionSink& sink_;

  SessionTable<VirtualModule, LazyBytes> sessions_;

  // Guards what the executor's calls share with the timer thread: all below but the timer itself.
  // Never held while reporting or moving bytes.
  std::mutex mutex_;
  Timeline timeline_;
  std::deque<Pending> pending_;  // in order of their ends
  bool reporting_ = false;       // the timer thread reports, and looks at pending_ again afterwards
  bool closing_ = false;

  WakeTimer timer_;
  PreparationLine line_;
  std::thread timer_thread_;
};

}  // namespace gpusched::device
