// What the CUDA device does off the executor's time: sessions, modules, memory.
#include <exception>
#include <utility>

#include "device/cuda/cuda_device.h"
#include "device/cuda/error.h"
#include "device/refusals.h"

namespace gpusched::device {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // Clang needs to be told until version 17

}  // namespace

Status CudaDevice::OpenSession(SessionId session, Quota quota) {
  if (health_.broken()) return LostStatus();
  const std::lock_guard lock(mutex_);
  Status status = quotas_.Open(session, quota.memory_bytes);
  if (status.ok()) sessions_[session.serial];
  return status;
}

void CudaDevice::CloseSession(SessionId session, Ticket ticket) {
  line_.Append(session, Pace::kQuick, [this, session, ticket] {
    std::unique_lock lock(mutex_);
    auto gone = sessions_.extract(session.serial);
    lock.unlock();
    Status status = gone.empty() ? NoSuchSession(session) : Status::Ok();
    if (!gone.empty()) LeaveBehindIfLost(std::move(gone.mapped()));
    gone = {};  // the memory is free before anybody is promised it
    lock.lock();
    quotas_.Close(session);
    lock.unlock();
    sink_.Post(Prepared{.ticket = ticket, .status = std::move(status), .module = {}});
  });
}

void CudaDevice::Prepare(Ticket ticket, Preparation preparation) {
  const SessionId session = SessionOf(preparation);
  const Pace pace = std::holds_alternative<LoadModule>(preparation) ? Pace::kSlow : Pace::kQuick;
  line_.Append(session, pace, [this, ticket, preparation = std::move(preparation)] {
    Prepared prepared;
    prepared.ticket = ticket;
    try {
      prepared.status =
          std::visit(Overloaded{
                         [&](const LoadModule& load) { return Carry(load, prepared.module); },
                         [&](const auto& other) { return Carry(other); },
                     },
                     preparation);
    } catch (const std::exception& error) {  // no memory left for a large text
      prepared.status = Status(StatusCode::kResourceExhausted, reason::kTooMany,
                               std::string("cannot prepare this: ") + error.what());
    }
    sink_.Post(std::move(prepared));
  });
}

Result<CudaDevice::Buffer*> CudaDevice::FindBuffer(SessionId session, BufferId buffer) {
  const std::lock_guard lock(mutex_);
  const auto holder = sessions_.find(session.serial);
  if (holder == sessions_.end()) return NoSuchSession(session);
  const auto found = holder->second.buffers.find(buffer);
  if (found == holder->second.buffers.end()) return NoSuchBuffer(buffer);
  return &found->second;
}

Result<CudaModule*> CudaDevice::FindModule(SessionId session, ModuleId module) const {
  const std::lock_guard lock(mutex_);
  const auto holder = sessions_.find(session.serial);
  if (holder == sessions_.end()) return NoSuchSession(session);
  const auto found = holder->second.modules.find(module);
  if (found == holder->second.modules.end()) return NoSuchModule(module);
  return found->second.get();
}

Status CudaDevice::Carry(const LoadModule& load, ModuleInfo& info) {
  {
    const std::lock_guard lock(mutex_);
    const auto session = sessions_.find(load.session.serial);
    if (session == sessions_.end()) return NoSuchSession(load.session);
    if (session->second.modules.contains(load.module)) return IdInUse("module", load.module);
  }
  if (health_.broken()) return LostStatus();
  Result<CudaModule> loaded =
      LoadCudaModule(load.images,
                     {.uuid = opened_.info.uuid,
                      .architecture = opened_.architecture,
                      .block_shared_bytes = opened_.info.local_memory_bytes},
                     health_);
  if (!loaded.ok()) return loaded.status();
  info = loaded->info;
  const std::lock_guard lock(mutex_);
  sessions_[load.session.serial].modules.emplace(load.module,
                                                 std::make_unique<CudaModule>(*std::move(loaded)));
  return Status::Ok();
}

Status CudaDevice::Carry(const UnloadModule& unload) {
  std::unique_lock lock(mutex_);
  const auto session = sessions_.find(unload.session.serial);
  if (session == sessions_.end()) return NoSuchSession(unload.session);
  auto gone = session->second.modules.extract(unload.module);
  lock.unlock();  // the driver may wait for the device before it unloads
  if (gone.empty()) return NoSuchModule(unload.module);
  Session left;
  left.modules.insert(std::move(gone));
  LeaveBehindIfLost(std::move(left));
  return Status::Ok();
}

// Else they go here and now.
void CudaDevice::LeaveBehindIfLost(Session what) {
  if (!health_.broken()) return;
  const std::lock_guard lock(mutex_);
  left_behind_.push_back(std::move(what));
}

Status CudaDevice::Carry(const Allocate& allocate) {
  std::unique_lock lock(mutex_);
  const auto session = sessions_.find(allocate.session.serial);
  if (session == sessions_.end()) return NoSuchSession(allocate.session);
  if (session->second.buffers.contains(allocate.buffer)) return IdInUse("buffer", allocate.buffer);
  if (health_.broken()) return LostStatus();
  Status status = quotas_.Take(allocate.session, allocate.bytes);
  if (!status.ok()) return status;
  lock.unlock();
  Result<DeviceMemory> memory = MakeMemory(allocate.bytes);
  lock.lock();
  if (!memory.ok()) {
    quotas_.Give(allocate.session, allocate.bytes);
    return memory.status();
  }
  // Only this session's preparations touch the entry, and they come one after the other.
  sessions_[allocate.session.serial].buffers.emplace(
      allocate.buffer, Buffer{.bytes = allocate.bytes, .memory = *std::move(memory)});
  return Status::Ok();
}

// Zeroed: what another session left is nobody's to read.
Result<DeviceMemory> CudaDevice::MakeMemory(std::uint64_t bytes) {
  void* made = nullptr;
  const cudaStream_t stream = opened_.upkeep.get();
  cudaError_t error = health_.Seen("allocating memory", cudaMallocAsync(&made, bytes, stream));
  if (error != cudaSuccess) return CudaFailure("allocating memory", error);
  DeviceMemory memory(static_cast<std::byte*>(made), FreeInStream{stream});
  error = health_.Seen("zeroing memory", cudaMemsetAsync(made, 0, bytes, stream));
  if (error == cudaSuccess) {
    error = health_.Seen("zeroing memory", cudaStreamSynchronize(stream));
  }
  if (error != cudaSuccess) return CudaFailure("zeroing memory", error);
  return memory;
}

Status CudaDevice::Carry(const Free& free) {
  std::unique_lock lock(mutex_);
  const auto session = sessions_.find(free.session.serial);
  if (session == sessions_.end()) return NoSuchSession(free.session);
  auto gone = session->second.buffers.extract(free.buffer);
  if (gone.empty()) return NoSuchBuffer(free.buffer);
  const std::uint64_t bytes = gone.mapped().bytes;
  lock.unlock();
  Session left;
  left.buffers.insert(std::move(gone));
  LeaveBehindIfLost(std::move(left));
  lock.lock();
  quotas_.Give(free.session, bytes);
  return Status::Ok();
}

}  // namespace gpusched::device
