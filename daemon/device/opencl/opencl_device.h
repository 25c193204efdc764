// A device reached through OpenCL: ranges of launches on an in-order queue, timed by events.
//
// A launch of a module that was built for it (cut_prelude.h) runs as any range of its blocks.
// Every buffer lies in its session's arena and is used in place on a host-memory device. Start
// enqueues on the caller's thread (about 8 us on PoCL 3.1) and never waits; a waiter thread
// reports.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "device/device.h"
#include "device/opencl/arena.h"
#include "device/opencl/completion_waiter.h"
#include "device/opencl/handle.h"
#include "device/opencl/opencl_module.h"
#include "device/preparation_line.h"
#include "device/session_table.h"

namespace gpusched::device {

// A device that is there and has a context, but no sessions yet.
struct OpenedOpenCl {
  DeviceInfo info;
  cl_device_id device = nullptr;
  DeviceHandle part;  // `device`, where it is a part of another
  ContextHandle context;
  QueueHandle queue;  // in order, with profiling
  std::uint64_t largest_buffer = 0;
  std::string cannot_cut;  // why launches run whole, "" if info.can_cut
};

class OpenClDevice final : public Device {
 public:
  OpenClDevice(OpenedOpenCl, CompletionSink&);
  ~OpenClDevice() override;

  const DeviceInfo& info() const override { return opened_.info; }
  Status OpenSession(SessionId, Quota) override;
  void CloseSession(SessionId, Ticket) override;
  // A compute unit works on one group at a time, or on several of which nothing is told.
  std::uint64_t WaveBlocks(const LaunchCommand&) const override {
    return opened_.info.compute_units;
  }
  void Prepare(Ticket, Preparation) override;
  void Start(Ticket, const Command&) override;

 private:
  using Parts = std::unordered_map<std::uint64_t, MemoryHandle>;
  struct Buffer {
    std::uint64_t bytes = 0;
    MemoryHandle memory;  // owns its mapping through a destructor callback
    // By offset, for arguments that begin inside; the executor's own.
    Parts parts;
  };
  using Sessions = SessionTable<OpenClModule, Buffer, std::shared_ptr<Arena>>;

  // Each enqueues and fills in the event, or says why it cannot.
  Status Enqueue(const LaunchCommand&, EventHandle&);
  Status Enqueue(const CopyInCommand&, EventHandle&);
  Status Enqueue(const CopyOutCommand&, EventHandle&);
  Status Enqueue(const FillCommand&, EventHandle&);
  Status SetArguments(cl_kernel, const LaunchCommand&);
  Status SetArgument(cl_kernel, std::uint32_t index, SessionId, const Argument&);
  Result<cl_mem> Part(Buffer&, std::uint64_t offset);
  template <typename Copy>
  Result<cl_mem> Target(const Copy&);  // the buffer, if the copy's range lies within it

  Result<Buffer*> FindBuffer(SessionId, BufferId);

  Status Carry(const LoadModule&, ModuleInfo&);
  Status Carry(const UnloadModule&);
  Status Carry(const Allocate&);
  Status Carry(const Free&);
  Result<Buffer> MakeBuffer(Arena&, std::uint64_t bytes);

  const OpenedOpenCl opened_;
  CompletionSink& sink_;
  // Forgotten while a launch is made, whose arguments may be among them: one that is set holds
  // nothing. The executor's own.
  std::vector<Parts> forgotten_parts_;

  Sessions sessions_;

  CompletionWaiter waiter_;
  PreparationLine line_;
};

}  // namespace gpusched::device
