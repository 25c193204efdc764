// Ends by force the connections of a server that is going down.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace gpusched::rpc {

// gRPC waits for every write it has begun, and a write to a client that reads no more never ends:
// cancelling the call does not take it back. So a server that goes down keeps one of these beside
// it, which from `after` on shuts every connection to `endpoints` down. Nobody is let in any more
// by then.
class CutOff {
 public:
  CutOff(std::vector<std::string> endpoints, std::chrono::milliseconds after);

 private:
  std::jthread thread_;  // stops and is joined at the end
};

}  // namespace gpusched::rpc
