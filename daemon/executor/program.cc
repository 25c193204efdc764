// Binds operations to resources, then checks them against the kernels' signatures.
#include "executor/program.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/limits.h"
#include "executor/commands.h"
#include "executor/limits.h"
#include "executor/signature.h"
#include "gpusched/reasons.h"
#include "gpusched/units.h"

namespace gpusched::executor {
namespace {

Status Prefixed(std::size_t operation, const Status& status) {
  return Status(status.code(), status.reason(),
                "operation " + std::to_string(operation) + ": " + status.message());
}

std::uint64_t Mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdULL;
}

// Launches of one kernel with one block shape and about as many blocks are expected to take the
// same time per block; in a template each place has its own expectation.
std::uint64_t LaunchKey(const BoundOperation& bound, const Launch& launch,
                        std::uint64_t template_id, std::size_t place) {
  std::uint64_t key = Mix(1, bound.target->device_id);
  key = Mix(key, bound.kernel);
  key = Mix(key, launch.block.x);
  key = Mix(key, launch.block.y);
  key = Mix(key, launch.block.z);
  key = Mix(key, std::bit_width(device::Volume(launch.grid)));
  if (template_id == 0) return key;
  return Mix(Mix(key, template_id), place + 1);
}

// Copies of about one size share an expectation: the small ones are all overhead.
std::uint64_t CopyKey(std::size_t kind, std::uint64_t bytes) {
  return Mix(Mix(2, kind), std::bit_width(bytes));
}

std::uint64_t HeldBytes(const BoundOperation& bound) {
  std::uint64_t bytes = sizeof bound;
  if (const auto* launch = std::get_if<Launch>(&bound.asked)) {
    bytes += launch->kernel.size() + launch->arguments.size() * sizeof(device::Argument);
    for (const device::Argument& argument : launch->arguments) {
      if (const auto* value = std::get_if<device::ValueArgument>(&argument)) bytes += value->size();
    }
  }
  return bytes;
}

// What the program as a whole names, reads back and holds.
void Summarise(Program& program) {
  program.named.clear();
  program.result_bytes = program.held_bytes = 0;
  program.has_copies_in = false;
  for (const auto& operation : program.operations) {
    program.named.push_back(operation->target);
    for (const ResourcePtr& buffer : operation->buffers) {
      if (buffer != nullptr) program.named.push_back(buffer);
    }
    program.held_bytes += HeldBytes(*operation);
    if (const auto* out = std::get_if<CopyOut>(&operation->asked))
      program.result_bytes += out->bytes;
    if (std::holds_alternative<CopyIn>(operation->asked)) program.has_copies_in = true;
  }
  std::sort(program.named.begin(), program.named.end());
  program.named.erase(std::unique(program.named.begin(), program.named.end()), program.named.end());
}

Status UnknownKernel(const Resource& module, const std::string& name) {
  std::string known;
  std::size_t listed = 0;
  for (const device::KernelInfo& kernel : module.info.kernels) {
    if (listed == kNamesInMessage) break;
    known += (listed++ == 0 ? "" : ", ") + kernel.name;
  }
  if (listed < module.info.kernels.size()) known += ", ...";
  return Status(StatusCode::kNotFound, reason::kUnknownKernel,
                "module " + std::to_string(module.id) + " has no kernel '" + name + "'; it has " +
                    (known.empty() ? "none" : known));
}

}  // namespace

bool Program::settled() const {
  return std::none_of(named.begin(), named.end(), [](const ResourcePtr& resource) {
    return resource->state == Resource::State::kPreparing;
  });
}

Result<std::shared_ptr<Program>> Binder::Bind(std::vector<Operation> operations) const {
  if (operations.size() > core::Limits{}.operations_per_job) {
    return Status(StatusCode::kInvalidArgument, reason::kTooMany,
                  "the job has " + std::to_string(operations.size()) + " operations; " +
                      std::to_string(core::Limits{}.operations_per_job) +
                      " are possible, split it");
  }
  auto program = std::make_shared<Program>();
  program->operations.reserve(operations.size());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    Result<std::shared_ptr<BoundOperation>> bound = BindOperation(std::move(operations[i]));
    if (!bound.ok()) return Prefixed(i, bound.status());
    program->operations.push_back(std::move(*bound));
  }
  Summarise(*program);
  if (program->result_bytes > kResultBytesPerJob) {
    return Status(StatusCode::kResourceExhausted, reason::kStagingExceeded,
                  "the job would read back " + FormatBytes(program->result_bytes) +
                      "; one job may " + FormatBytes(kResultBytesPerJob) +
                      ", read in several jobs");
  }
  return program;
}

Result<std::shared_ptr<Program>> Binder::Change(const Program& original,
                                                std::vector<ArgumentChange>& changes) const {
  auto program = std::make_shared<Program>(original);
  program->checked = false;
  std::shared_ptr<BoundOperation> copy;
  std::uint32_t copied = 0;
  for (ArgumentChange& change : changes) {
    const std::uint32_t at = change.operation;
    if (at >= program->operations.size()) {
      return Status(StatusCode::kInvalidArgument, reason::kOutOfBounds,
                    "a change to operation " + std::to_string(at) + "; the template has " +
                        std::to_string(program->operations.size()));
    }
    if (!std::holds_alternative<Launch>(program->operations[at]->asked)) continue;
    // Changes of one launch come together; each launch is copied once.
    if (copy == nullptr || copied != at) {
      copy = std::make_shared<BoundOperation>(*program->operations[at]);
      copied = at;
      program->operations[at] = copy;
    }
    Launch& launch = std::get<Launch>(copy->asked);
    if (change.argument >= launch.arguments.size()) {
      return Status(StatusCode::kInvalidArgument, reason::kArgumentCount,
                    "a change to argument " + std::to_string(change.argument) + " of operation " +
                        std::to_string(at) + ", which has " +
                        std::to_string(launch.arguments.size()));
    }
    const bool value = std::holds_alternative<device::ValueArgument>(change.value);
    if (value && std::get<device::ValueArgument>(change.value).size() > kValueBytes) {
      return Status(StatusCode::kInvalidArgument, reason::kArgumentSize,
                    "an argument of more than " + std::to_string(kValueBytes) + " bytes");
    }
    if (Status status = BindArgument(change.value, copy->buffers[change.argument]); !status.ok()) {
      return Prefixed(at, status);
    }
    launch.arguments[change.argument] = std::move(change.value);
    copy->checked = false;
  }
  Summarise(*program);
  return program;
}

Status Binder::Check(Program& program, std::uint64_t template_id) const {
  for (const ResourcePtr& resource : program.named) {
    if (resource->state != Resource::State::kFailed) continue;
    return Status(StatusCode::kFailedPrecondition, reason::kDependencyFailed,
                  (resource->kind == Resource::Kind::kModule ? "module " : "buffer ") +
                      std::to_string(resource->id) + ": " + resource->error.message());
  }
  program.extents.clear();
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    if (!program.operations[i]->checked) {
      auto bound = std::make_shared<BoundOperation>(*program.operations[i]);
      if (const auto* launch = std::get_if<Launch>(&bound->asked)) {
        if (Status status = CheckLaunch(*bound); !status.ok()) return Prefixed(i, status);
        bound->extent.estimate_key = LaunchKey(*bound, *launch, template_id, i);
      }
      bound->checked = true;
      program.operations[i] = std::move(bound);
    }
    program.extents.push_back(program.operations[i]->extent);
  }
  program.checked = true;
  return Status::Ok();
}

Result<std::shared_ptr<BoundOperation>> Binder::BindOperation(Operation operation) const {
  auto bound = std::make_shared<BoundOperation>();
  Status status;
  core::Operation& extent = bound->extent;
  if (auto* launch = std::get_if<Launch>(&operation)) {
    extent.kind = core::Operation::Kind::kLaunch;
    status = BindLaunch(*launch, *bound);
  } else {
    const auto range = [&](core::Operation::Kind kind, std::uint64_t buffer, std::uint64_t offset,
                           std::uint64_t bytes) {
      extent = {.kind = kind,
                .cuttable = true,
                .extent = bytes,
                .estimate_key = CopyKey(operation.index(), bytes)};
      return BindRange(buffer, offset, bytes, *bound);
    };
    if (const auto* in = std::get_if<CopyIn>(&operation)) {
      status = range(core::Operation::Kind::kCopyIn, in->buffer, in->offset, in->bytes);
    } else if (const auto* out = std::get_if<CopyOut>(&operation)) {
      status = range(core::Operation::Kind::kCopyOut, out->buffer, out->offset, out->bytes);
    } else if (const auto* fill = std::get_if<Fill>(&operation)) {
      status = range(core::Operation::Kind::kFill, fill->buffer, fill->offset, fill->bytes);
      if (status.ok() && fill->value > 255) {
        status = Status(StatusCode::kInvalidArgument, reason::kOutOfBounds,
                        "a fill with " + std::to_string(fill->value) + "; a byte goes to 255");
      }
    }
  }
  if (!status.ok()) return status;
  bound->asked = std::move(operation);
  return bound;
}

Status Binder::BindLaunch(Launch& launch, BoundOperation& bound) const {
  if (launch.range) {
    // A block that is still to be chosen counts as one thread until then.
    const device::Dim3 block = launch.range->names_block() ? launch.range->block : device::Dim3{};
    if (Status status = ShapeBlocks(launch, block); !status.ok()) return status;
  }
  if (Status status = CheckShape(launch, device_.info()); !status.ok()) return status;
  ResourcePtr module = finder_.module(launch.module);
  if (module == nullptr) {
    return Status(StatusCode::kNotFound, reason::kUnknownModule,
                  "no module " + std::to_string(launch.module) + "; " + finder_.modules_known());
  }
  bound.target = std::move(module);
  bound.buffers.resize(launch.arguments.size());
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    Status status = BindArgument(launch.arguments[i], bound.buffers[i]);
    if (!status.ok()) return status;
  }
  return Status::Ok();
}

Status Binder::BindArgument(device::Argument& argument, ResourcePtr& named) const {
  named.reset();
  auto* at = std::get_if<device::BufferArgument>(&argument);
  if (at == nullptr) return Status::Ok();
  ResourcePtr buffer = finder_.buffer(at->buffer);
  if (buffer == nullptr) {
    return Status(StatusCode::kNotFound, reason::kUnknownBuffer,
                  "no buffer " + std::to_string(at->buffer) + "; " + finder_.buffers_known());
  }
  if (at->offset >= buffer->bytes) {
    return Status(StatusCode::kOutOfRange, reason::kOutOfBounds,
                  "offset " + std::to_string(at->offset) + " into buffer " +
                      std::to_string(at->buffer) + ", which has " + std::to_string(buffer->bytes) +
                      " bytes");
  }
  at->buffer = buffer->device_id;
  named = std::move(buffer);
  return Status::Ok();
}

Status Binder::BindRange(std::uint64_t id, std::uint64_t offset, std::uint64_t bytes,
                         BoundOperation& bound) const {
  ResourcePtr buffer = finder_.buffer(id);
  if (buffer == nullptr) {
    return Status(StatusCode::kNotFound, reason::kUnknownBuffer,
                  "no buffer " + std::to_string(id) + "; " + finder_.buffers_known());
  }
  if (bytes == 0) {
    return Status(StatusCode::kInvalidArgument, reason::kOutOfBounds,
                  "a range of zero bytes of buffer " + std::to_string(id));
  }
  if (offset > buffer->bytes || bytes > buffer->bytes - offset) {
    return Status(StatusCode::kOutOfRange, reason::kOutOfBounds,
                  std::to_string(bytes) + " bytes from offset " + std::to_string(offset) +
                      " pass the end of buffer " + std::to_string(id) + ", which has " +
                      std::to_string(buffer->bytes) + " bytes");
  }
  bound.target = std::move(buffer);
  return Status::Ok();
}

Status Binder::CheckLaunch(BoundOperation& bound) const {
  Launch& launch = std::get<Launch>(bound.asked);
  const Resource& module = *bound.target;
  const auto& kernels = module.info.kernels;
  const auto kernel = std::find_if(kernels.begin(), kernels.end(), [&](const auto& candidate) {
    return candidate.name == launch.kernel;
  });
  if (kernel == kernels.end()) return UnknownKernel(module, launch.kernel);
  bound.kernel = static_cast<std::uint32_t>(kernel - kernels.begin());
  const device::DeviceInfo& info = device_.info();
  if (launch.range && !launch.range->names_block()) {
    const bool required = kernel->required_block.x != 0;
    Status status =
        ShapeBlocks(launch, ChooseBlock(launch.range->threads, *kernel, info),
                    required ? ", which kernel '" + kernel->name + "' requires," : std::string());
    if (status.ok()) status = CheckShape(launch, info);
    if (!status.ok()) return status;
  }
  bound.extent.extent = device::Volume(launch.grid);
  bound.extent.cuttable =
      kernel->cuttable && info.can_cut && device::Volume(launch.grid) > info.whole_up_to_blocks;
  if (Status fault = CheckSignature(launch, *kernel, info); !fault.ok()) return fault;
  bound.extent.wave = std::clamp<std::uint64_t>(
      device_.WaveBlocks(LaunchOf(launch, bound, session_)), 1, device::kLargestWave);
  return Status::Ok();
}

}  // namespace gpusched::executor
