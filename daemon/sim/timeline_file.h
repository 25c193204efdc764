// Writes what ran when as a file for Perfetto and chrome://tracing.
//
// One track a session: its slices, its commands within them, its jobs as spans of their own.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpusched/status.h"
#include "sim/simulation.h"

namespace gpusched::sim {

class TimelineFile : public Observer {
 public:
  // By session serial, from 1 on.
  explicit TimelineFile(std::vector<std::string> names) : names_(std::move(names)) {}
  Status Open(const std::string& path);
  Status Close();

  void OnEvent(Time, const core::Event&) override;
  void OnAction(Time, const core::Action&) override;

 private:
  struct Command {
    std::uint64_t session = 0, job = 0, operation = 0, first = 0, count = 0;
  };
  void Span(std::uint64_t session, int lane, const std::string& name, Time from, Time to,
            const std::string& arguments);
  void Name(std::uint64_t session);

  std::vector<std::string> names_;
  std::vector<bool> named_;
  std::string path_;
  std::ofstream file_;
  bool first_ = true;
  std::unordered_map<std::uint64_t, Command> in_flight_;  // by ticket
};

}  // namespace gpusched::sim
