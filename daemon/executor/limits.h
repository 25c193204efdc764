// Every bound of a session's edge, each with its reason; the core's own stand in core/limits.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "gpusched/policy/types.h"

namespace gpusched::executor {

// What an operator sets for all sessions; changes hold for sessions and shares from then on.
struct SessionLimits {
  std::int32_t max_priority = 127;
  Rate max_share = kWholeDevice;            // of `min`; a greater `max` is granted as this
  std::uint64_t default_memory = 64 << 20;  // quota of a session that names none
  std::uint64_t max_memory = 0;             // greatest quota; 0: whatever the device has
  std::uint32_t window_jobs = 256;          // outstanding jobs; at most core::Limits' jobs
  std::uint64_t window_bytes = 64 << 20;    // staged bytes outstanding
  std::uint32_t max_sessions = 4'096;       // of the daemon

  friend bool operator==(const SessionLimits&, const SessionLimits&) = default;
};

// A label is read by people in a table.
inline constexpr std::size_t kNameBytes = 256;
// A service has a handful; each holds compiled code in the daemon.
inline constexpr std::size_t kModulesPerSession = 256;
// The tables stay in a few MiB; a model's tensors fit many times over.
inline constexpr std::size_t kBuffersPerSession = 16'384;
// One per kind of request and batch size is the use; this is far beyond.
inline constexpr std::size_t kTemplatesPerSession = 1'024;
// Staging areas may be empty, so that bytes alone would not bound their number.
inline constexpr std::size_t kStagingsPerSession = 4'096;
// CUDA's own limit on a kernel's parameters is 4 KiB together; nothing needs more arguments.
inline constexpr std::size_t kArgumentsPerLaunch = 256;
inline constexpr std::size_t kValueBytes = 4'096;
// What the templates and outstanding jobs of one session may take in the daemon beside their data.
inline constexpr std::size_t kProgramBytes = 32 << 20;
// Bytes read back that the client has not taken yet; a single greater job goes alone.
inline constexpr std::uint64_t kResultWindow = 64 << 20;
// What one job may read back: it all lies in the daemon until the client takes it.
inline constexpr std::uint64_t kResultBytesPerJob = 256 << 20;
// Messages of one frame handled before others get their turn; more than a client that keeps to its
// window sends at once.
inline constexpr std::size_t kMessagesPerRound = 512;
// A client that says it waited longer is wrong about its clock.
inline constexpr Duration kLongestClientTime = std::chrono::hours(1);
// Names listed in a message of the kind "there are ...".
inline constexpr std::size_t kNamesInMessage = 8;

}  // namespace gpusched::executor
