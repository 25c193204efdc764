// A device's sessions with the modules and buffers they hold: every check of ids and quotas that
// backends share, so that one mistake is refused in the same way on each device.
//
// Used by the executor, which looks things up, and by the threads that prepare; its lock is held
// for the tables only, never while something is made or destroyed. A session's preparations come
// one after the other, and nothing is removed that a command names: the caller sees to both, so
// what was found stays where it is.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <variant>

#include "device/device.h"
#include "device/quota_book.h"
#include "device/refusals.h"
#include "gpusched/status.h"

namespace gpusched::device {

// `Own` is what a backend keeps of a session besides. Modules, buffers and it can be moved.
template <typename Module, typename Buffer, typename Own = std::monostate>
class SessionTable {
 public:
  struct SizedBuffer {
    Buffer buffer;
    std::uint64_t bytes = 0;  // of the session's quota
  };
  struct Session {
    Own own;
    std::unordered_map<ModuleId, Module> modules;
    std::unordered_map<BufferId, SizedBuffer> buffers;
  };
  // What leaves the table is destroyed before its memory is promised to anybody else.
  struct Destroy {
    template <typename T>
    void operator()(T gone) const {
      (void)gone;
    }
  };

  explicit SessionTable(std::uint64_t device_bytes) : quotas_(device_bytes) {}

  // ALREADY_EXISTS; RESOURCE_EXHAUSTED (DEVICE_MEMORY) if the quotas' sum would pass the device.
  Status Open(SessionId session, Quota quota, Own own = {}) {
    const std::lock_guard lock(mutex_);
    Status status = quotas_.Open(session, quota.memory_bytes);
    if (status.ok()) sessions_[session.serial].own = std::move(own);
    return status;
  }

  // `let_go` is given the Session, if it is there, and is through with it when it returns.
  template <typename LetGo = Destroy>
  Status Close(SessionId session, LetGo let_go = {}) {
    std::unique_lock lock(mutex_);
    auto gone = sessions_.extract(session.serial);
    lock.unlock();
    if (gone.empty()) return NoSuchSession(session);
    let_go(std::move(gone.mapped()));
    gone = {};
    lock.lock();
    quotas_.Close(session);
    return Status::Ok();
  }

  // NOT_FOUND where there is no such session, module or buffer.
  Result<Module*> FindModule(SessionId session, ModuleId module) {
    const std::lock_guard lock(mutex_);
    Session* holder = Find(session);
    if (holder == nullptr) return NoSuchSession(session);
    const auto found = holder->modules.find(module);
    if (found == holder->modules.end()) return NoSuchModule(module);
    return &found->second;
  }
  Result<SizedBuffer*> FindBuffer(SessionId session, BufferId buffer) {
    const std::lock_guard lock(mutex_);
    Session* holder = Find(session);
    if (holder == nullptr) return NoSuchSession(session);
    const auto found = holder->buffers.find(buffer);
    if (found == holder->buffers.end()) return NoSuchBuffer(buffer);
    return &found->second;
  }

  // `make` answers Result<Module>. It is not called where the module would be refused: NOT_FOUND,
  // ALREADY_EXISTS.
  template <typename Make>
  Status AddModule(SessionId session, ModuleId module, Make make) {
    {
      const std::lock_guard lock(mutex_);
      const Session* holder = Find(session);
      if (holder == nullptr) return NoSuchSession(session);
      if (holder->modules.contains(module)) return IdInUse("module", module);
    }
    Result<Module> made = make();
    if (!made.ok()) return made.status();
    const std::lock_guard lock(mutex_);
    Find(session)->modules.emplace(module, *std::move(made));
    return Status::Ok();
  }

  template <typename LetGo = Destroy>
  Status RemoveModule(SessionId session, ModuleId module, LetGo let_go = {}) {
    std::unique_lock lock(mutex_);
    Session* holder = Find(session);
    if (holder == nullptr) return NoSuchSession(session);
    auto gone = holder->modules.extract(module);
    lock.unlock();
    if (gone.empty()) return NoSuchModule(module);
    let_go(std::move(gone.mapped()));
    return Status::Ok();
  }

  // `make` is given the session's Own and answers Result<Buffer>. It is not called where the buffer
  // would be refused: NOT_FOUND, ALREADY_EXISTS, RESOURCE_EXHAUSTED (QUOTA_EXCEEDED).
  template <typename Make>
  Status AddBuffer(const Allocate& allocate, Make make) {
    std::unique_lock lock(mutex_);
    Session* holder = Find(allocate.session);
    if (holder == nullptr) return NoSuchSession(allocate.session);
    if (holder->buffers.contains(allocate.buffer)) return IdInUse("buffer", allocate.buffer);
    Status status = quotas_.Take(allocate.session, allocate.bytes);
    if (!status.ok()) return status;
    lock.unlock();
    Result<Buffer> made = make(holder->own);
    lock.lock();
    if (!made.ok()) {
      quotas_.Give(allocate.session, allocate.bytes);
      return made.status();
    }
    holder->buffers.emplace(allocate.buffer, SizedBuffer{*std::move(made), allocate.bytes});
    return Status::Ok();
  }

  template <typename LetGo = Destroy>
  Status RemoveBuffer(SessionId session, BufferId buffer, LetGo let_go = {}) {
    std::unique_lock lock(mutex_);
    Session* holder = Find(session);
    if (holder == nullptr) return NoSuchSession(session);
    auto gone = holder->buffers.extract(buffer);
    if (gone.empty()) return NoSuchBuffer(buffer);
    const std::uint64_t bytes = gone.mapped().bytes;
    lock.unlock();
    let_go(std::move(gone.mapped().buffer));
    gone = {};
    lock.lock();
    quotas_.Give(session, bytes);
    return Status::Ok();
  }

 private:
  // With mutex_ held. A session stays where it is until it is closed, which is its last
  // preparation.
  Session* Find(SessionId session) {
    const auto found = sessions_.find(session.serial);
    return found == sessions_.end() ? nullptr : &found->second;
  }

  std::mutex mutex_;  // between the executor's calls and the preparing threads
  QuotaBook quotas_;
  std::unordered_map<std::uint64_t, Session> sessions_;  // by serial
};

}  // namespace gpusched::device
