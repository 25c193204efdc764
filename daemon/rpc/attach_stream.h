// One client's stream: a state machine of tags on the completion queue, and its end of a session.
//
// The poller thread moves it; the holder of the executor's baton, on whatever thread, sends through
// it. One read, one write and one frame of messages are on their way at most.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "control/session_directory.h"
#include "executor/port.h"
#include "gpusched/v1/session.grpc.pb.h"
#include "gpusched/v1/session.pb.h"
#include "rpc/outbox.h"

namespace gpusched::rpc {

// Raw: what does not parse gets a typed answer too.
using SessionService = v1::Sessions::WithRawMethod_Attach<v1::Sessions::Service>;

// What all streams of a server share; the poller's.
struct StreamHost {
  SessionService* service = nullptr;
  grpc::ServerCompletionQueue* queue = nullptr;
  control::SessionDirectory* directory = nullptr;
  std::function<std::string(const std::string& peer)> who;
  v1::ClientFrame scratch;      // every frame is decoded and done with before the next
  std::atomic<int> streams{0};  // with tags on the queue
};

class AttachStream final : public executor::SessionPort,
                           public std::enable_shared_from_this<AttachStream> {
 public:
  enum class Step : std::uint8_t { kAccepted, kRead, kWritten, kFinished, kUnread, kOver };
  struct Tag {
    AttachStream* stream = nullptr;
    Step step{};
  };

  // Awaits the next call on the server; the stream owns itself until its last tag came back.
  static void Accept(StreamHost& host);
  explicit AttachStream(StreamHost& host);

  // The poller: the step was taken (ok) or cannot be.
  void Proceed(Step step, bool ok);

  void Send(std::vector<executor::ServerMessage>& messages) override;
  void FrameHandled() override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void OnAccepted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnUnread(bool ok);
  void OnOver();
  // What is wrong with the frame that was read, or OK: it lies in `frame`.
  Status TakeFrame();
  Status TakeHello();
  bool Parse();

  // The stream's last word; the session, if there is one, is closed.
  void EndWith(const Status& why);
  void CloseSession(const Status& why);
  void ReadNext(const Lock&);
  void WriteNext(const Lock&);
  // SessionEnded is in the outbox; the client is given a while to read it and what is before it.
  void Ending(const Lock&);
  void Started(const Lock&) { ++outstanding_; }
  void ReleaseIfDone(Lock& lock);

  StreamHost& host_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&context_};
  Tag accepted_{this, Step::kAccepted}, read_{this, Step::kRead}, written_{this, Step::kWritten},
      finished_{this, Step::kFinished}, unread_{this, Step::kUnread}, over_{this, Step::kOver};
  grpc::ByteBuffer incoming_;
  executor::Executor* executor_ = nullptr;  // since Hello; the poller's
  bool said_hello_ = false, said_goodbye_ = false;

  // A leaf: between the poller and the holder of the baton. gRPC calls under it never call back.
  std::mutex mutex_;
  Outbox outbox_;
  v1::ServerFrame outgoing_;
  std::uint64_t result_bytes_ = 0;  // in the frame being written
  int outstanding_ = 0;             // tags
  bool writing_ = false;
  bool ending_ = false;  // SessionEnded is in the outbox: nothing follows it
  grpc::Alarm alarm_;    // since then
  std::uint64_t written_frames_ = 0, written_before_alarm_ = 0;
  bool last_ = false;    // it is in the frame being written
  bool broken_ = false;  // nothing can be read or written any more
  bool finishing_ = false;
  std::shared_ptr<AttachStream> self_;
};

}  // namespace gpusched::rpc
