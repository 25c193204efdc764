// The yardstick of round_trip_grpc: the same frames over the same stream, with nothing behind it.
#pragma once

#include <memory>
#include <string>

#include "gpusched/status.h"

namespace gpusched::bench {

// Serves Sessions.Attach on both endpoints with one completion-queue thread that answers every
// frame with one of the size of a job's report. TCP is on a free loopback port, printed when it is
// ready. Returns when its standard input ends.
int ServeBareEcho(const std::string& unix_endpoint);

// One stream; the caller's thread writes and reads.
class BareEcho {
 public:
  static Result<std::unique_ptr<BareEcho>> Connect(const std::string& endpoint);
  ~BareEcho();
  BareEcho(const BareEcho&) = delete;
  BareEcho& operator=(const BareEcho&) = delete;

  // A frame of the size of a template's Submit there, one of the size of a report back.
  Status RoundTrip();

 private:
  class Stream;
  explicit BareEcho(std::unique_ptr<Stream> stream);

  std::unique_ptr<Stream> stream_;
};

}  // namespace gpusched::bench
