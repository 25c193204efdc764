// The gRPC side of a session, without gRPC's headers: a channel, and one bidirectional call on it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "gpusched/status.h"
#include "gpusched/v1/session.pb.h"

namespace gpusched::internal {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();

// One `Sessions.Attach`. Reads, writes and the half close are started by calls that return at once;
// Next tells what became of them, one event at a time. At most one read and one write (or half
// close) may be under way. Starting is the caller's to serialise; Next belongs to one thread at a
// time, which may differ from the one that starts.
class Call {
 public:
  enum class Event : std::uint8_t {
    kRead,        // a frame has arrived; not ok: none will come any more
    kWritten,     // the frame has left; not ok: the call is broken
    kHalfClosed,  // the daemon knows that no frame follows
    kFinished,    // the last event: `outcome` is valid
    kTimedOut,
  };
  struct Happened {
    Event event;
    bool ok;
  };

  class Rpc;
  explicit Call(std::unique_ptr<Rpc> rpc);
  // Cancels the call if it has not finished.
  ~Call();

  void StartRead(v1::ServerFrame* frame);
  void StartWrite(const v1::ClientFrame& frame);  // the frame may be changed when this returns
  void StartHalfClose();
  void StartFinish();  // after a read that was not ok
  void Cancel();
  void Wake();  // Next returns kTimedOut; once in a call's life
  Happened Next(Deadline deadline);
  Status outcome() const;

 private:
  std::unique_ptr<Rpc> rpc_;
};

// A connection to one daemon. Thread-safe.
class Channel {
 public:
  static Result<std::shared_ptr<Channel>> Connect(const std::string& endpoint,
                                                  std::chrono::nanoseconds retry_for);
  Channel();
  ~Channel();

  std::unique_ptr<Call> Attach();

 private:
  struct Grpc;
  std::unique_ptr<Grpc> grpc_;
};

}  // namespace gpusched::internal
