// What comes from a session's stream and what goes back, as plain values without a wire format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/device.h"
#include "gpusched/policy/types.h"
#include "gpusched/status.h"

namespace gpusched::executor {

// From the client. Ids are the client's.
struct Hello {
  std::string name, device, client, peer;
  Share share;
  std::uint64_t memory_bytes = 0;  // 0: the configured default
};
struct LoadModule {
  std::uint64_t module = 0;
  std::vector<device::Image> images;
};
struct UnloadModule {
  std::uint64_t module = 0;
};
struct Allocate {
  std::uint64_t buffer = 0, bytes = 0;
};
struct Free {
  std::uint64_t buffer = 0;
};
struct OpenQueue {
  std::uint32_t queue = 0;
};
struct CloseQueue {
  std::uint32_t queue = 0;
};
struct Data {
  std::uint64_t staging = 0, offset = 0;
  std::string content;
};

// A launch told by its threads.
struct NdRange {
  device::Dim3 threads{0, 0, 0};
  device::Dim3 block{0, 0, 0};  // zeros: chosen when the kernel is known
  device::Dim3 offset{0, 0, 0};
  bool names_block() const { return block.x != 0 || block.y != 0 || block.z != 0; }
};
struct Launch {
  std::uint64_t module = 0;
  std::string kernel;
  device::Dim3 grid{0, 0, 0}, block;
  std::optional<NdRange> range;             // grid and block follow from it
  std::vector<device::Argument> arguments;  // buffers by the client's ids
  std::uint64_t dynamic_local_bytes = 0;
};
struct CopyIn {
  std::uint64_t buffer = 0, offset = 0, bytes = 0, staging = 0;
};
struct CopyOut {
  std::uint64_t buffer = 0, offset = 0, bytes = 0;
};
struct Fill {
  std::uint64_t buffer = 0, offset = 0, bytes = 0;
  std::uint32_t value = 0;
};
using Operation = std::variant<Launch, CopyIn, CopyOut, Fill>;

struct RegisterTemplate {
  std::uint64_t template_id = 0;
  std::vector<Operation> operations;
};
struct ForgetTemplate {
  std::uint64_t template_id = 0;
};
struct ArgumentChange {
  std::uint32_t operation = 0, argument = 0;
  device::Argument value;
  std::uint64_t staging = 0;  // of a CopyIn
};
struct Submit {
  std::uint64_t job = 0;
  std::uint32_t queue = 0;
  std::uint64_t template_id = 0;  // 0: the operations are here
  std::vector<Operation> operations;
  std::vector<ArgumentChange> changes;
  Duration in_client{0};  // since Submit was called
  Duration deadline{0};   // from the call of Submit; 0: the session's target
  bool skip_if_late = false;
  std::string tag;
};
struct Cancel {
  std::uint64_t job = 0;
};
struct ChangeShare {
  Share share;
};
struct Goodbye {};

using ClientMessage =
    std::variant<Submit, Data, Hello, LoadModule, UnloadModule, Allocate, Free, RegisterTemplate,
                 ForgetTemplate, OpenQueue, CloseQueue, Cancel, ChangeShare, Goodbye>;

// To the client.
struct Welcome {
  SessionId session;
  std::uint32_t device_index = 0;
  const device::DeviceInfo* device = nullptr;  // lives as long as the executor
  Duration preemption_bound{0};
  std::uint32_t window_jobs = 0;
  std::uint64_t window_bytes = 0;
  Share share;
  std::uint64_t memory_bytes = 0;
};
enum class Outcome : std::uint8_t { kDone, kCancelled, kSkipped, kFailed, kRefused };
struct JobReport {
  std::uint64_t job = 0;
  Outcome outcome = Outcome::kDone;
  Status error;
  Duration in_client{0}, queued{0}, run{0}, charged{0};
  bool late = false;
  std::uint64_t generation = 0;
  Time started{}, ended{};  // the epoch: never started
};
// What a job's copies out read, piece after piece; goes before its report.
struct Piece {
  std::unique_ptr<std::byte[]> bytes;
  std::uint64_t size = 0;
};
struct JobResult {
  std::uint64_t job = 0;
  std::vector<Piece> pieces;
};
struct ModuleLoaded {
  std::uint64_t module = 0;
  Status error;
  device::ModuleInfo info;
};
struct Answer {
  enum class Subject : std::uint8_t { kBuffer, kModule, kTemplate, kQueue, kShare, kStaging };
  Subject subject = Subject::kBuffer;
  std::uint64_t id = 0;
  Status error;
};
// The last message of a stream; OK after a goodbye.
struct Ended {
  Status why;
};

using ServerMessage = std::variant<JobReport, JobResult, Welcome, ModuleLoaded, Answer, Ended>;

}  // namespace gpusched::executor
