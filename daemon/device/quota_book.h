// Who may hold how much of a device's memory: the quotas' sum never passes the device, nor a
// session its quota. Not thread-safe; every sum is checked, nothing underflows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "gpusched/policy/types.h"
#include "gpusched/reasons.h"
#include "gpusched/status.h"
#include "gpusched/units.h"

namespace gpusched::device {

class QuotaBook {
 public:
  explicit QuotaBook(std::uint64_t device_bytes) : device_bytes_(device_bytes) {}

  Status Open(SessionId session, std::uint64_t quota) {
    if (lines_.contains(session.serial)) {
      return Status(
          StatusCode::kAlreadyExists, reason::kIdInUse,
          "session " + std::to_string(session.serial) + " is already open on this device");
    }
    if (quota > device_bytes_ - promised_) {
      return Status(StatusCode::kResourceExhausted, reason::kDeviceMemory,
                    "a quota of " + FormatBytes(quota) +
                        " does not fit: " + FormatBytes(device_bytes_ - promised_) +
                        " of the device's " + FormatBytes(device_bytes_) +
                        " are not promised to others; ask for less, or for another device");
    }
    promised_ += quota;
    lines_[session.serial] = Line{.quota = quota};
    return Status::Ok();
  }

  // Takes `bytes` of the session's quota, all or nothing.
  Status Take(SessionId session, std::uint64_t bytes) {
    const auto line = lines_.find(session.serial);
    if (line == lines_.end()) {
      return Status(StatusCode::kNotFound, reason::kUnknownSession,
                    "session " + std::to_string(session.serial) + " is not open on this device");
    }
    if (bytes == 0) {
      return Status(StatusCode::kInvalidArgument, reason::kArgumentSize,
                    "a buffer has at least one byte");
    }
    const std::uint64_t left = line->second.quota - line->second.used;
    if (bytes > left) {
      return Status(StatusCode::kResourceExhausted, reason::kQuotaExceeded,
                    FormatBytes(bytes) + " do not fit: " + FormatBytes(left) +
                        " of the session's quota of " + FormatBytes(line->second.quota) +
                        " are left; free buffers, or open the session with more memory");
    }
    line->second.used += bytes;
    return Status::Ok();
  }

  // Gives back what Take took.
  void Give(SessionId session, std::uint64_t bytes) {
    const auto line = lines_.find(session.serial);
    if (line != lines_.end()) line->second.used -= std::min(bytes, line->second.used);
  }

  void Close(SessionId session) {
    const auto line = lines_.find(session.serial);
    if (line == lines_.end()) return;
    promised_ -= line->second.quota;
    lines_.erase(line);
  }

 private:
  struct Line {
    std::uint64_t quota = 0;
    std::uint64_t used = 0;  // <= quota
  };
  std::uint64_t device_bytes_;
  std::uint64_t promised_ = 0;                     // the quotas' sum, <= device_bytes_
  std::unordered_map<std::uint64_t, Line> lines_;  // by session serial
};

}  // namespace gpusched::device
