// A session's stream as the executor sees it: where its frames lie and where its answers go.
#pragma once

#include <cstddef>
#include <vector>

#include "executor/messages.h"
#include "gpusched/policy/types.h"

namespace gpusched::executor {

class Session;

// One frame of messages, decoded. The stream fills it, brings FrameArrived, and touches it again
// only after FrameHandled: at most one frame of a stream is ever on its way, which bounds the
// mailbox.
struct Frame {
  std::vector<ClientMessage> messages;
  std::size_t handled = 0;  // of them; the holder's
  Time received{};
};

class SessionPort {
 public:
  virtual ~SessionPort() = default;

  // Called by the holder of the baton. Takes the messages of one turn and leaves the vector empty;
  // after an Ended the stream is finished.
  virtual void Send(std::vector<ServerMessage>& messages) = 0;
  // The frame was handled; the next may be read.
  virtual void FrameHandled() = 0;

  Frame frame;
  // The holder's: empty before Hello was accepted and after the session went.
  Session* session = nullptr;
};

}  // namespace gpusched::executor
