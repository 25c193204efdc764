// Hands out session ids: serials never come twice, slots are the smallest that are free.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "gpusched/policy/types.h"

namespace gpusched::core {

class SessionIds {
 public:
  SessionId Take() {
    SessionId id{.slot = used_, .serial = ++last_serial_};
    if (free_.empty()) {
      ++used_;
    } else {
      id.slot = free_.top();
      free_.pop();
    }
    return id;
  }
  // After SessionGone.
  void Release(SessionId id) { free_.push(id.slot); }

 private:
  std::uint32_t used_ = 0;
  std::uint64_t last_serial_ = 0;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free_;
};

}  // namespace gpusched::core
