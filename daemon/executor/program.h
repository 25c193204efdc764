// What a job runs, bound to a session's modules and buffers and checked before the device sees it.
//
// Binding happens in two steps, because a job may name a module that is still being built. Bind,
// when the message arrives: ids become resources, ranges and shapes are checked. Check, when all
// resources are ready: kernels are found and arguments compared with their signatures. A program
// that passed both is never changed again, and any number of jobs may share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/job.h"
#include "device/device.h"
#include "executor/messages.h"
#include "gpusched/status.h"

namespace gpusched::executor {

// A module or buffer of a session. The device knows it by an id of ours, so that a client may use
// an id again while the old thing's memory still waits for its last job.
struct Resource {
  enum class Kind : std::uint8_t { kModule, kBuffer };
  enum class State : std::uint8_t { kPreparing, kReady, kFailed, kReleasing };
  Kind kind = Kind::kBuffer;
  State state = State::kPreparing;
  bool dropped = false;    // the client let it go; it is released with its last job
  std::uint32_t jobs = 0;  // outstanding ones that name it
  std::uint64_t id = 0;    // the client's
  std::uint64_t device_id = 0;
  std::uint64_t bytes = 0;  // of a buffer
  device::ModuleInfo info;  // of a module that is ready
  Status error;             // why it failed
};
using ResourcePtr = std::shared_ptr<Resource>;

// Bytes that arrived ahead of the job that copies them in.
struct Staging {
  std::string content;
};
using StagingPtr = std::shared_ptr<Staging>;

struct BoundOperation {
  Operation asked;                   // arguments carry the device's ids
  ResourcePtr target;                // a launch's module; a copy's or fill's buffer
  std::vector<ResourcePtr> buffers;  // of a launch, as its arguments; empty where one is no buffer
  std::uint32_t kernel = 0;
  core::Operation extent;
  bool checked = false;
};

struct Program {
  std::vector<std::shared_ptr<const BoundOperation>> operations;
  std::vector<core::Operation> extents;  // one each, as the core is told; once checked
  std::vector<ResourcePtr> named;        // each once
  std::uint64_t result_bytes = 0;
  std::uint64_t held_bytes = 0;  // of arguments and tables
  bool has_copies_in = false;
  bool checked = false;

  // Every resource is ready or has failed.
  bool settled() const;
};

// Finds a session's resources by the client's ids; null where there is none.
struct ResourceFinder {
  std::function<ResourcePtr(std::uint64_t)> module, buffer;
  // "there are 1, 2, 5", for messages.
  std::function<std::string()> modules_known, buffers_known;
};

class Binder {
 public:
  Binder(const device::Device& device, SessionId session, const ResourceFinder& finder)
      : device_(device), session_(session), finder_(finder) {}

  Result<std::shared_ptr<Program>> Bind(std::vector<Operation> operations) const;
  // A copy of `original` with some launches' arguments replaced.
  Result<std::shared_ptr<Program>> Change(const Program& original,
                                          std::vector<ArgumentChange>& changes) const;
  // Only once settled. The first thing that is wrong; OK: `checked` is set. 0: of no template.
  Status Check(Program& program, std::uint64_t template_id) const;

 private:
  Result<std::shared_ptr<BoundOperation>> BindOperation(Operation operation) const;
  Status BindLaunch(Launch& launch, BoundOperation& bound) const;
  Status BindArgument(device::Argument& argument, ResourcePtr& named) const;
  Status BindRange(std::uint64_t buffer, std::uint64_t offset, std::uint64_t bytes,
                   BoundOperation& bound) const;
  Status CheckLaunch(BoundOperation& bound) const;

  const device::Device& device_;
  const SessionId session_;
  const ResourceFinder& finder_;
};

}  // namespace gpusched::executor
