// The operator's calls as plain C++: what gpuschedctl, the promises and the tests speak to a
// daemon.
//
// Thread-safe. Every call ends within kCallLimit; a daemon that cannot be reached is UNAVAILABLE
// (DAEMON_UNREACHABLE). Times are nanoseconds on the daemon's clocks, as their names say.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpusched/status.h"

namespace gpusched::admin {

using Duration = std::chrono::nanoseconds;

// No operator's call computes for long; reading a configuration file is the slowest.
inline constexpr std::chrono::seconds kCallLimit{30};

struct Share {
  int weight = 100;
  double min = 0, max = 1;
  bool strict = false;
  int priority = 0;
  Duration latency_target{0};
};

struct Device {
  std::string uuid, name, backend;
  int index = 0;
  std::uint64_t memory_bytes = 0, memory_used_bytes = 0;
  std::uint32_t compute_units = 0;
  bool order_kept = true, can_cut = false, lost = false;
  Duration preemption_bound{0}, shortest_useful_chunk{0};
  // Since the daemon started.
  Duration charged{0}, busy{0};
  std::uint64_t commands = 0, slices = 0, preemptions = 0, rescues = 0, ejections = 0;
  std::uint32_t sessions = 0;
};

struct Session {
  std::uint64_t id = 0;
  std::string name, device, peer;
  Share share;
  // Since it opened.
  Duration charged{0};  // "got"
  Duration asked{0};    // meaningless where !shares_promised
  bool shares_promised = true;
  Duration lag{0};
  double rate = 0;  // asked now, as a fraction of the device
  Duration busy{0}, longest_wait{0}, longest_uncuttable{0}, bound_in_force{0};
  bool paused = false, at_cap = false, runnable = false;
  std::uint64_t jobs_waiting = 0, jobs_running = 0, jobs_done = 0, jobs_failed = 0,
                jobs_cancelled = 0, jobs_skipped = 0, jobs_late = 0;
  std::uint64_t slices = 0, preempted = 0, rescues = 0, commands = 0;
  std::uint64_t memory_bytes = 0, memory_quota_bytes = 0;
  Duration opened{0};  // the daemon's steady clock
};

struct Module {
  std::uint64_t session = 0, module = 0;
  std::string session_name;
  struct Kernel {
    std::string name;
    bool cuttable = false;
    std::string whole_reason;
    std::vector<std::string> parameters;  // "buffer x", "4-byte value a", "local"
  };
  std::vector<Kernel> kernels;
};

using Parameters = std::map<std::string, std::string>;

struct Policy {
  std::string kind;
  Parameters parameters;  // all of them, defaults included
  std::uint64_t generation = 0;
  std::string source;  // who set it
  std::string etag;
  std::int64_t since_unix_ns = 0, expires_unix_ns = 0;  // the latter 0: it stays
  bool file_differs = false;
  std::string note;                   // "ejected: ..."
  std::vector<std::string> honoured;  // fields of the share it honours
};

struct PolicyKind {
  struct Parameter {
    std::string name, range, default_value, meaning;
  };
  std::string kind, promise;
  std::vector<Parameter> parameters;
  std::vector<std::string> honoured;
};

struct Reloaded {
  bool changed = false;
  std::vector<std::string> needs_restart;
};

struct Snapshot {
  Duration time{0};  // the daemon's steady clock
  Policy policy;
  std::vector<Device> devices;
  std::vector<Session> sessions;
};

enum class SliceEnd : std::uint8_t { kExpired, kRanDry, kPreempted, kWithdrawn };

struct Slice {
  int device = 0;
  std::uint64_t session = 0, generation = 0;
  Duration started{0}, ended{0};  // by the device, on the daemon's steady clock
  Duration granted{0}, charged{0};
  std::uint32_t commands = 0;
  bool rescue = false;
  SliceEnd end = SliceEnd::kExpired;
};

struct SliceBatch {
  std::vector<Slice> slices;
  std::uint64_t dropped = 0;  // because nobody read fast enough, since the last batch
};

// One of several things wrong with what was asked, as with a policy's parameters.
struct FieldError {
  std::string field, message;
  int line = 0, column = 0;  // 1-based; 0: no position
};
using FieldErrors = std::vector<FieldError>;

// What the daemon sends by itself. Next belongs to one thread; Stop may come from any.
template <typename T>
class Feed {
 public:
  virtual ~Feed() = default;
  // Waits for the next one; CANCELLED after Stop, UNAVAILABLE (DAEMON_LOST) where the daemon went.
  virtual Result<T> Next() = 0;
  virtual void Stop() = 0;
};

class AdminClient {
 public:
  // "unix:/path"; empty: the environment's GPUSCHED_ADMIN, else "unix:/run/gpusched/admin.sock".
  static Result<AdminClient> Connect(const std::string& endpoint = {});

  Result<std::vector<Device>> Devices();
  Result<std::vector<Session>> Sessions();
  Result<std::vector<Module>> Modules();

  // `fields`, where given, receives everything that is wrong with the request.
  Result<Policy> GetPolicy();
  Result<std::vector<PolicyKind>> PolicyKinds();
  Result<Policy> ValidatePolicy(const std::string& kind, const Parameters& parameters,
                                FieldErrors* fields = nullptr);
  struct Update {
    std::string kind = {};  // "": the kind in force, its other parameters kept
    Parameters parameters = {};
    std::string etag = {};  // "": whatever is in force
    Duration for_time{0};   // zero: it stays
  };
  Result<Policy> SetPolicy(const Update& update, FieldErrors* fields = nullptr);
  Result<std::vector<Policy>> PolicyHistory();                  // newest first
  Result<Policy> RollBackPolicy(std::uint64_t generation = 0);  // 0: the one before
  Result<Reloaded> Reload(FieldErrors* fields = nullptr);

  // By id or name; an ambiguous name is refused with the ids.
  Result<std::vector<Session>> Pause(const std::string& session);
  Result<std::vector<Session>> Resume(const std::string& session);
  Result<std::vector<Session>> Kill(const std::string& session);

  // A snapshot at once and then every `period` (at least 50 ms).
  Result<std::unique_ptr<Feed<Snapshot>>> Watch(Duration period);
  // Every slice of every device from now on: returns when the daemon is recording, so that no slice
  // that starts later is missing.
  Result<std::unique_ptr<Feed<SliceBatch>>> WatchSlices();

 private:
  class Channel;
  explicit AdminClient(std::shared_ptr<Channel> channel);

  std::shared_ptr<Channel> channel_;
};

}  // namespace gpusched::admin
