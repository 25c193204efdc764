// What waits to be written to one stream, and how it is gathered into frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/messages.h"
#include "gpusched/v1/session.pb.h"

namespace gpusched::rpc {

// Guarded by its stream's mutex. Messages keep their order; those that wait together leave
// together, up to kFrameTarget; results leave in pieces of at most 1 MiB.
class Outbox {
 public:
  // A client that keeps to its window has a few hundred at most; beyond this nobody is reading.
  static constexpr std::size_t kUnread = 16'384;
  // Greater frames gain nothing and delay what comes after.
  static constexpr std::size_t kFrameTarget = 1 << 20;

  // Takes all of them and leaves the vector empty. False: too many are unread.
  bool Put(std::vector<executor::ServerMessage>& messages);
  void Put(executor::ServerMessage message) { waiting_.push_back(std::move(message)); }
  // Forgets everything.
  void Clear();
  bool empty() const { return first_ == waiting_.size(); }
  // Bytes of results wait.
  bool holds_results() const;

  struct Filled {
    std::uint64_t result_bytes = 0;
    bool last = false;  // it ends with SessionEnded
  };
  // Empties `frame` and fills it.
  Filled Fill(v1::ServerFrame& frame);

 private:
  // As much of a result as fits; true when all of it is out.
  bool FillResult(executor::JobResult& result, v1::ServerFrame& frame, std::size_t& bytes,
                  std::uint64_t& result_bytes);

  std::vector<executor::ServerMessage> waiting_;
  std::size_t first_ = 0;  // of those not yet written
  // How far the first message is out, where it is a result.
  std::size_t piece_ = 0;
  std::uint64_t piece_offset_ = 0, result_offset_ = 0;
};

}  // namespace gpusched::rpc
