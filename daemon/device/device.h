// The asynchronous interface every device implements: orders in, exactly one completion for each.
//
// Called by the holder of the executor's baton only, one call at a time; nothing may block. A
// device may own waiter threads, which report through the sink from any thread, also from within
// Start. The clock is the executor's: Time is steady_clock nanoseconds (clock.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "gpusched/policy/types.h"
#include "gpusched/status.h"

namespace gpusched::device {

enum class Ticket : std::uint64_t {};  // the caller's name for an order; unique while outstanding
using ModuleId = std::uint64_t;        // the client's, unique within a session
using BufferId = std::uint64_t;        // likewise

enum class PreemptionLevel : std::uint8_t {
  kBetweenCommands,  // Interrupt has no effect
  kBetweenBlocks,    // Interrupt stops a command at a block boundary
};

struct DeviceInfo {
  std::string uuid;                // stable over restarts, "virtual-0", "pocl-<hash>"
  std::string name;                // for people
  std::string backend;             // "virtual", "opencl", "cuda"
  std::uint64_t memory_bytes = 0;  // what sessions may allocate, together
  std::uint32_t compute_units = 1;
  std::uint64_t max_block_threads = 1'024;
  std::uint64_t local_memory_bytes = 48 * 1024;
  std::uint64_t offset_alignment = 1;  // a buffer argument's offset is a multiple of it
  // Commands of one class execute one after the other, as started; one of a higher class need not
  // wait for those of lower ones. 1: all keep order.
  std::uint32_t priority_classes = 1;
  PreemptionLevel preemption = PreemptionLevel::kBetweenCommands;
  bool can_cut = false;
  // Launches of no more blocks are never cut: blocks that all run side by side may wait for each
  // other.
  std::uint64_t whole_up_to_blocks = 1;
  std::uint64_t probe_units = 1;  // blocks worth running to learn a kernel's time, at least a wave
  Duration shortest_useful_chunk{50'000};
};

struct Quota {
  std::uint64_t memory_bytes = 0;
};

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};
// Blocks in a grid; at most 2^96, so checked: returns 0 for an empty or overflowing (>= 2^63) grid.
constexpr std::uint64_t Volume(Dim3 d) {
  const std::uint64_t xy = std::uint64_t{d.x} * d.y;
  if (xy == 0 || d.z == 0 || xy > (std::uint64_t{1} << 63) / d.z) return 0;
  return xy * d.z;
}

struct Image {
  enum class Format : std::uint8_t { kVirtual, kOpenClC, kCudaC, kPtx, kCubin, kFatbin };
  Format format = Format::kVirtual;
  std::string bytes;
};

struct Parameter {
  enum class Kind : std::uint8_t { kBuffer, kValue, kLocal };
  Kind kind = Kind::kValue;
  // Bytes of a value; 0 for buffers and local memory. A buffer with a size may as well be a value
  // of that size: not every image tells.
  std::uint32_t size = 0;
  std::string name;  // "" where unknown
};
struct KernelInfo {
  std::string name;
  std::vector<Parameter> parameters;
  bool cuttable = false;
  std::string whole_reason;      // why not, in words; "" if cuttable
  Dim3 required_block{0, 0, 0};  // zeros: any
  std::uint64_t max_block_threads = 1'024;
  std::uint64_t static_local_bytes = 0;
  std::uint64_t offset_limit = 0;  // a launch's offset is below it along each axis; 0: none has one
};
struct ModuleInfo {
  std::vector<KernelInfo> kernels;  // in a fixed order: a launch names a kernel by its index
  std::string build_log;            // warnings, "" if none
};

struct LoadModule {
  SessionId session;
  ModuleId module = 0;
  std::vector<Image> images;
};
struct UnloadModule {
  SessionId session;
  ModuleId module = 0;
};
struct Allocate {
  SessionId session;
  BufferId buffer = 0;
  std::uint64_t bytes = 0;
};
struct Free {
  SessionId session;
  BufferId buffer = 0;
};
// Never on the executor's time: a device with work to do here does it on a thread of its own.
// Preparations of one session complete in order. A module or buffer may only be taken away when no
// command that names it is outstanding (the caller sees to that).
using Preparation = std::variant<LoadModule, UnloadModule, Allocate, Free>;

struct BufferArgument {
  BufferId buffer = 0;
  std::uint64_t offset = 0;
};  // offset < the buffer's size
struct LocalArgument {
  std::uint64_t bytes = 0;
};
using ValueArgument = std::string;  // raw bytes, as many as the parameter's size
using Argument = std::variant<BufferArgument, ValueArgument, LocalArgument>;

// Everything a command points to stays valid until its completion. The caller has checked module,
// kernel, argument count, kinds and sizes, ranges within buffers, grid and block against the infos.
struct LaunchCommand {
  SessionId session;
  ModuleId module = 0;
  std::uint32_t kernel = 0;
  Dim3 grid, block;
  const std::vector<Argument>* arguments = nullptr;
  std::uint64_t dynamic_local_bytes = 0;
  std::uint64_t first = 0, count = 0;  // linear block range, x fastest; [0, volume) is the whole
  Dim3 offset{0, 0, 0};                // added to every thread's ids; only OpenCL has such a thing
};
struct CopyInCommand {  // bytes [first, first + count) of the operation
  SessionId session;
  BufferId buffer = 0;
  std::uint64_t offset = 0;           // of the operation's byte 0 in the buffer
  const std::byte* source = nullptr;  // the operation's byte 0
  std::uint64_t first = 0, count = 0, total = 0;
};
struct CopyOutCommand {
  SessionId session;
  BufferId buffer = 0;
  std::uint64_t offset = 0;
  std::byte* target = nullptr;
  std::uint64_t first = 0, count = 0, total = 0;
};
struct FillCommand {  // one byte value, as memset
  SessionId session;
  BufferId buffer = 0;
  std::uint64_t offset = 0;
  std::uint8_t value = 0;
  std::uint64_t first = 0, count = 0, total = 0;
};
struct Command {
  std::variant<LaunchCommand, CopyInCommand, CopyOutCommand, FillCommand> what;
  Time submitted{};                  // the turn's clock reading
  Duration expected{0};              // what the caller expects it to take; zero: nothing is known
  std::uint32_t priority_class = 0;  // below DeviceInfo::priority_classes; higher goes first
};

struct Completion {
  enum class Outcome : std::uint8_t { kDone, kStopped, kFailed, kLost };
  Ticket ticket{};
  Outcome outcome = Outcome::kDone;
  std::uint64_t next = 0;  // kStopped: first block or byte not done
  // `ended` never decreases along one device, `started` not within one class.
  Time started{}, ended{};
  Status error;  // kFailed, kLost
};
// The answer to Prepare and CloseSession.
struct Prepared {
  Ticket ticket{};
  Status status;
  ModuleInfo module;  // after LoadModule
};
struct Lost {
  Status why;
};  // after every outstanding ticket completed with kLost
struct Restored {};

// More than any device runs side by side, and few enough for arithmetic with them.
constexpr std::uint64_t kLargestWave = std::uint64_t{1} << 20;

class CompletionSink {  // any thread; never blocks for long
 public:
  virtual ~CompletionSink() = default;
  virtual void Post(Completion) = 0;
  // Several at once, in the order of their starting: cheaper where they come together.
  virtual void Post(std::vector<Completion> all) {
    for (Completion& one : all) Post(std::move(one));
  }
  virtual void Post(Prepared) = 0;
  virtual void Post(Lost) = 0;
  virtual void Post(Restored) = 0;
};

class Device {
 public:
  virtual ~Device() = default;  // outlives no outstanding order; joins its threads

  virtual const DeviceInfo& info() const = 0;
  // RESOURCE_EXHAUSTED if the quotas' sum would pass what the device has.
  virtual Status OpenSession(SessionId, Quota) = 0;
  // No command of the session is outstanding. Prepared is posted when its memory is free (and
  // zeroed).
  virtual void CloseSession(SessionId, Ticket) = 0;
  // How many blocks of this launch run side by side, of any range of it: one more takes as long as
  // as many again. 1 where blocks follow one another or nothing is known. Quick: asked when a job
  // is checked. Never more than kLargestWave.
  virtual std::uint64_t WaveBlocks(const LaunchCommand&) const { return 1; }
  virtual void Prepare(Ticket, Preparation) = 0;   // exactly one Prepared
  virtual void Start(Ticket, const Command&) = 0;  // exactly one Completion
  virtual void Interrupt(Ticket) {}  // a hint; still one Completion, kDone or kStopped
  // When to be called again, counted from `now`; kForever: the sink wakes us.
  virtual Duration Poll(Time /*now*/) { return kForever; }
};

}  // namespace gpusched::device
