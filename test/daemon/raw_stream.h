// A session's stream without the library: whatever bytes a test wants to send.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "gpusched/v1/session.pb.h"

namespace gpusched::test {

class RawStream {
 public:
  explicit RawStream(const std::string& endpoint);
  ~RawStream();

  void Write(const std::string& bytes);
  void Write(const v1::ClientFrame& frame) { Write(frame.SerializeAsString()); }
  void HalfClose();
  // Nothing once the stream has ended, or after a while without a message.
  std::optional<v1::ServerMessage> Read();
  // Skips other messages.
  std::optional<v1::SessionEnded> ReadEnded();
  std::optional<v1::JobReport> ReadReport();

  // A frame with a Hello as the library says it.
  static v1::ClientFrame Hello();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::deque<v1::ServerMessage> read_;
};

}  // namespace gpusched::test
