// A GPU reached through the CUDA runtime: one context, one stream in order, launches cut into boxes
// of blocks, times taken by events, completions found by polling.
//
// CUDA calls no one when something ends (and calls nothing at all once the context is in error), so
// the executor's Poll looks, at intervals that follow the expected end. A sticky error ends the
// context for good: everything in flight is lost, the session that was running is named, and only a
// new process gets the device back.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/cuda/argument_pack.h"
#include "device/cuda/context_health.h"
#include "device/cuda/cuda_module.h"
#include "device/cuda/event_clock.h"
#include "device/cuda/expected_time.h"
#include "device/cuda/handle.h"
#include "device/cuda/staging_ring.h"
#include "device/device.h"
#include "device/preparation_line.h"
#include "device/quota_book.h"

namespace gpusched::device {

// Streams of commands at most; drivers tell six priorities apart.
constexpr std::size_t kMostPriorityClasses = 64;

// A device with its context, but no sessions yet.
struct OpenedCuda {
  DeviceInfo info;
  int ordinal = 0;
  Architecture architecture;
  std::array<std::uint32_t, 3> largest_grid{}, largest_block{};
  std::vector<StreamHandle> work;  // of commands, by class of priority; at least one
  StreamHandle upkeep;             // memory is allocated and zeroed here
  PinnedHandle staging;
  std::size_t staging_bytes = 0;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(OpenedCuda, CompletionSink&);
  ~CudaDevice() override;

  const DeviceInfo& info() const override { return opened_.info; }
  Status OpenSession(SessionId, Quota) override;
  void CloseSession(SessionId, Ticket) override;
  // Asks the driver once for each kind of block.
  std::uint64_t WaveBlocks(const LaunchCommand&) const override;
  void Prepare(Ticket, Preparation) override;
  void Start(Ticket, const Command&) override;
  Duration Poll(Time now) override;

 private:
  struct Buffer {
    std::uint64_t bytes = 0;
    DeviceMemory memory;
  };
  struct Session {
    std::unordered_map<ModuleId, std::unique_ptr<CudaModule>> modules;
    std::unordered_map<BufferId, Buffer> buffers;
  };
  // The commands of one class of priority, one after the other.
  struct Lane {
    StreamHandle stream;
    CudaEventHandle last_end;  // of the last command with times
    EventClock clock;
    Time last_started{}, last_ended{};
  };
  // A command between its Start and its completion.
  struct Flight {
    Ticket ticket{};
    Lane* lane = nullptr;
    SessionId session;
    std::string what;  // "kernel 'x'"
    Time submitted{};
    Duration expected{0};
    bool enqueued = false;           // something of it is on the stream
    CudaEventHandle started, ended;  // null where they could not be recorded
    Status error;                    // why it failed, or failed in part
    std::byte* staged = nullptr;     // its piece of the ring
    std::byte* target = nullptr;     // of a copy out: where the staged bytes go
    std::uint64_t bytes = 0;
    ExpectedTime* learns = nullptr;  // from these units
    std::uint64_t units = 0;
    std::optional<EventClock::Span> over;  // when it was, once that was seen
  };

  Status Enqueue(const LaunchCommand&, Flight&);
  Status Enqueue(const CopyInCommand&, Flight&);
  Status Enqueue(const CopyOutCommand&, Flight&);
  Status Enqueue(const FillCommand&, Flight&);
  Status CheckLaunch(const LaunchCommand&, const CudaKernel&, const KernelInfo&) const;
  Status LaunchBoxes(const LaunchCommand&, CudaKernel&, const KernelInfo&, Flight&);
  template <typename Copy>
  Result<std::byte*> Target(const Copy&);  // its buffer, if the copy's range lies within
  // Around what is put on the stream.
  void Begin(Flight&);
  void End(Flight&);
  CudaEventHandle TakeEvent();
  void GiveEvent(CudaEventHandle);

  // Completes what is over, by when it ended; false once the device is lost.
  bool Reap();
  std::deque<Flight>::iterator FirstOver();
  template <typename Visit>
  void VisitHeads(Visit);  // the first in flight of each lane, in the order of their starting
  cudaError_t Ask(const Flight&);
  void Complete(Flight&);
  EventClock::Span TimesOf(Flight&, Time seen);
  void PostCompletion(const Flight&, Completion::Outcome, Status, EventClock::Span);
  void Lose(std::string_view seen);

  // The tables' entries stay where they are while a command names them; with mutex_ not held.
  Result<Buffer*> FindBuffer(SessionId, BufferId);
  Result<CudaModule*> FindModule(SessionId, ModuleId) const;

  Status Carry(const LoadModule&, ModuleInfo&);
  Status Carry(const UnloadModule&);
  Status Carry(const Allocate&);
  Status Carry(const Free&);
  Result<DeviceMemory> MakeMemory(std::uint64_t bytes);
  void LeaveBehindIfLost(Session);
  void UseDevice() const;
  Status LostStatus() const;

  OpenedCuda opened_;
  CompletionSink& sink_;
  mutable ContextHealth health_;  // a question may meet a broken context, too

  // Guards the tables between the executor's calls and the preparing threads.
  mutable std::mutex mutex_;
  QuotaBook quotas_;
  std::unordered_map<std::uint64_t, Session> sessions_;  // by serial
  // What was freed after the device was lost: commands that were given up may still execute.
  std::vector<Session> left_behind_;

  // The executor's own.
  std::deque<Flight> flights_;  // in the order of their starting
  std::vector<CudaEventHandle> spare_events_;
  std::vector<Lane> lanes_;  // by class
  Time last_ended_{};        // of them all
  StagingRing staging_;
  ArgumentPack arguments_;
  ExpectedTime copy_in_time_, copy_out_time_, fill_time_;
  bool lost_ = false;

  PreparationLine line_;  // last: its threads use the rest
};

}  // namespace gpusched::device
