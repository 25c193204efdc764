// What an operator may see of one device and its sessions, copied at one instant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/scheduler.h"
#include "device/device.h"

namespace gpusched::executor {

struct SessionSnapshot {
  core::SessionStatus status;
  std::string name, peer;
  std::uint64_t memory_bytes = 0, memory_quota_bytes = 0;
  Time opened{};
};

struct ModuleSnapshot {
  SessionId session;
  std::string session_name;
  std::uint64_t module = 0;
  std::vector<device::KernelInfo> kernels;
};

struct Snapshot {
  Time now{};
  std::uint32_t index = 0;
  const device::DeviceInfo* device = nullptr;  // lives as long as the executor
  core::DeviceStatus status;
  Duration preemption_bound{0};
  std::uint64_t memory_used_bytes = 0;
  bool promises_shares = false;           // the policy in force does
  std::vector<SessionSnapshot> sessions;  // in order of opening
};

}  // namespace gpusched::executor
