// The steps of a stream: accepted, read, written, finished, over.
#include <utility>  // Boost 1.74's asio forgets it under C++20.

#include "rpc/attach_stream.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include "executor/clock.h"
#include "gpusched/reasons.h"
#include "rpc/wire.h"

namespace gpusched::rpc {
namespace {

// A session that ended keeps its unread results while its client reads some of them in this time: a
// slow one gets all, one that reads nothing does not hold the daemon's memory.
constexpr std::chrono::seconds kUnreadTime(10);

// Nobody wants the results of a session that was killed, broke a rule or hung up; those of one that
// said goodbye, or that finished because the daemon stops or lost the device, are still to be read.
bool DropsResults(const Status& why) {
  return !why.ok() && why.reason() != reason::kDraining && why.reason() != reason::kDeviceLost;
}

Status Malformed(std::string message) {
  return Status(StatusCode::kInvalidArgument, reason::kMalformedFrame, std::move(message));
}

}  // namespace

void AttachStream::Accept(StreamHost& host) {
  auto stream = std::make_shared<AttachStream>(host);
  AttachStream& self = *stream;
  const Lock lock(self.mutex_);
  self.self_ = std::move(stream);
  ++host.streams;
  self.context_.AsyncNotifyWhenDone(&self.over_);
  self.Started(lock);
  host.service->RequestAttach(&self.context_, &self.stream_, host.queue, host.queue,
                              &self.accepted_);
}

AttachStream::AttachStream(StreamHost& host) : host_(host) {}

void AttachStream::Proceed(Step step, bool ok) {
  switch (step) {
    case Step::kAccepted: OnAccepted(ok); break;
    case Step::kRead: OnRead(ok); break;
    case Step::kWritten: OnWritten(ok); break;
    case Step::kFinished: break;
    case Step::kUnread: OnUnread(ok); break;
    case Step::kOver: OnOver(); break;
  }
  Lock lock(mutex_);
  --outstanding_;
  ReleaseIfDone(lock);
}

void AttachStream::OnAccepted(bool ok) {
  if (!ok) return;  // the server is shutting down
  Accept(host_);
  const Lock lock(mutex_);
  Started(lock);  // of kOver, which comes for accepted calls only
  ReadNext(lock);
}

void AttachStream::OnRead(bool ok) {
  if (!ok) {
    // Half-closed, or gone. After a goodbye the session finishes what waits; else it closes at
    // once.
    if (!said_goodbye_) {
      EndWith(
          Status(StatusCode::kCancelled, reason::kSessionClosed, "the client closed the stream"));
    }
    return;
  }
  {
    const Lock lock(mutex_);
    if (ending_) return;
  }
  const Status fault = TakeFrame();
  incoming_.Clear();
  // What came before the fault still counts.
  const bool empty = frame.messages.empty();
  if (!empty) executor_->Bring(executor::FrameArrived{shared_from_this()});
  if (!fault.ok()) {
    EndWith(fault);
  } else if (empty) {
    FrameHandled();
  }
}

bool AttachStream::Parse() {
  host_.scratch.Clear();
  grpc::Slice slice;
  if (incoming_.TrySingleSlice(&slice).ok()) {
    return host_.scratch.ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
  }
  grpc::ProtoBufferReader reader(&incoming_);
  return reader.status().ok() && host_.scratch.ParseFromZeroCopyStream(&reader);
}

Status AttachStream::TakeFrame() {
  if (incoming_.Length() > kFrameBytes) {
    return Status(StatusCode::kInvalidArgument, reason::kFrameTooLarge,
                  "a frame has at most 2 MiB, this one has " + std::to_string(incoming_.Length()) +
                      " bytes; send less at a time");
  }
  if (!Parse()) return Malformed("the frame is no gpusched.v1.ClientFrame");
  frame.received = executor::Now();
  for (v1::ClientMessage& message : *host_.scratch.mutable_messages()) {
    const bool hello = message.has_hello();
    if (hello == said_hello_) {
      if (hello) return Malformed("a second Hello; a session says it once");
      return Status(StatusCode::kFailedPrecondition, reason::kHelloExpected,
                    "the first message of a stream must be Hello");
    }
    if (hello && message.hello().version() != kProtocolVersion) {
      return Status(StatusCode::kFailedPrecondition, reason::kVersionMismatch,
                    "the client speaks version " + std::to_string(message.hello().version()) +
                        " of the protocol, this daemon version " +
                        std::to_string(kProtocolVersion) + "; update the older of them");
    }
    // What comes after it is the session's to refuse: it may cancel and free until it is over.
    said_goodbye_ = said_goodbye_ || message.has_goodbye();
    Status fault = Decode(message, frame.messages.emplace_back());
    if (fault.ok() && hello) fault = TakeHello();
    if (!fault.ok()) {
      frame.messages.pop_back();
      return fault;
    }
  }
  return Status::Ok();
}

Status AttachStream::TakeHello() {
  auto& hello = std::get<executor::Hello>(frame.messages.back());
  hello.peer = host_.who(context_.peer());
  const Result<executor::Executor*> placed = host_.directory->Place(hello);
  if (!placed.ok()) return placed.status();
  executor_ = *placed;
  said_hello_ = true;
  return Status::Ok();
}

void AttachStream::OnWritten(bool ok) {
  std::uint64_t results = 0;
  {
    const Lock lock(mutex_);
    writing_ = false;
    ++written_frames_;
    results = std::exchange(result_bytes_, 0);
    if (!ok) {
      broken_ = true;
      outbox_.Clear();
    } else if (last_ && !finishing_) {
      finishing_ = true;
      Started(lock);
      stream_.Finish(grpc::Status::OK, &finished_);
    } else {
      WriteNext(lock);
    }
  }
  if (results > 0) executor_->Bring(executor::ResultsSent{shared_from_this(), results});
}

void AttachStream::Ending(const Lock& lock) {
  ending_ = true;
  if (broken_) return;
  written_before_alarm_ = written_frames_;
  Started(lock);
  alarm_.Set(host_.queue, executor::WallClock() + kUnreadTime, &unread_);
}

void AttachStream::OnUnread(bool ok) {
  const Lock lock(mutex_);
  if (!ok || broken_) return;  // all was over in time
  if (written_frames_ > written_before_alarm_) return Ending(lock);
  broken_ = true;
  outbox_.Clear();
  context_.TryCancel();
}

void AttachStream::OnOver() {
  {
    const Lock lock(mutex_);
    broken_ = true;
    outbox_.Clear();
    alarm_.Cancel();
  }
  CloseSession(Status(StatusCode::kCancelled, reason::kSessionClosed, "the client's stream broke"));
}

void AttachStream::EndWith(const Status& why) {
  {
    const Lock lock(mutex_);
    if (!ending_) {
      Ending(lock);
      if (DropsResults(why) && outbox_.holds_results()) outbox_.Clear();
      outbox_.Put(executor::ServerMessage(executor::Ended{why}));
      WriteNext(lock);
    }
  }
  CloseSession(why);
}

void AttachStream::CloseSession(const Status& why) {
  if (executor_ != nullptr) executor_->Bring(executor::StreamClosed{shared_from_this(), why});
}

void AttachStream::Send(std::vector<executor::ServerMessage>& messages) {
  bool too_slow = false;
  {
    const Lock lock(mutex_);
    if (ending_ || broken_) {
      messages.clear();
      return;
    }
    if (const auto* ended = std::get_if<executor::Ended>(&messages.back())) {
      Ending(lock);
      if (DropsResults(ended->why) && outbox_.holds_results()) {
        outbox_.Clear();
        messages.erase(messages.begin(), messages.end() - 1);  // it may say that those are out
      }
    }
    if (!outbox_.Put(messages)) {
      too_slow = true;
      if (!ending_) Ending(lock);
      outbox_.Clear();
      outbox_.Put(executor::ServerMessage(
          executor::Ended{Status(StatusCode::kResourceExhausted, reason::kClientTooSlow,
                                 "the client does not read; " + std::to_string(Outbox::kUnread) +
                                     " messages waited for it")}));
    }
    WriteNext(lock);
  }
  if (too_slow) {
    CloseSession(
        Status(StatusCode::kResourceExhausted, reason::kClientTooSlow, "the client does not read"));
  }
}

void AttachStream::FrameHandled() {
  frame.messages.clear();
  const Lock lock(mutex_);
  if (!ending_ && !broken_) ReadNext(lock);
}

void AttachStream::ReadNext(const Lock& lock) {
  Started(lock);
  stream_.Read(&incoming_, &read_);
}

void AttachStream::WriteNext(const Lock& lock) {
  if (writing_ || broken_ || finishing_ || outbox_.empty()) return;
  const Outbox::Filled filled = outbox_.Fill(outgoing_);
  result_bytes_ = filled.result_bytes;
  last_ = filled.last;
  grpc::Slice slice(outgoing_.ByteSizeLong());
  outgoing_.SerializeWithCachedSizesToArray(const_cast<std::uint8_t*>(slice.begin()));
  writing_ = true;
  Started(lock);
  stream_.Write(grpc::ByteBuffer(&slice, 1), &written_);
}

void AttachStream::ReleaseIfDone(Lock& lock) {
  if (outstanding_ > 0) return;
  const std::shared_ptr<AttachStream> last = std::move(self_);
  lock.unlock();
  if (--host_.streams == 0) host_.streams.notify_all();
}

}  // namespace gpusched::rpc
