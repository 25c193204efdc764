// The operator's commands: each asks the daemon once, or follows it, and prints what a person reads
// or, with `json`, a script.
#pragma once

#include <cstdint>
#include <string>

#include "ctl/admin_client.h"

namespace gpusched::ctl {

// What all commands need; each returns the process's exit status.
struct Terminal {
  admin::AdminClient client;
  bool json = false;
};

int Devices(Terminal& terminal);
int Sessions(Terminal& terminal);
int Modules(Terminal& terminal);

int PolicyGet(Terminal& terminal);
int PolicyKinds(Terminal& terminal);
int PolicyHistory(Terminal& terminal);
int PolicyValidate(Terminal& terminal, const std::string& kind,
                   const admin::Parameters& parameters);
int PolicySet(Terminal& terminal, const admin::AdminClient::Update& update);
int PolicyRollBack(Terminal& terminal, std::uint64_t generation);
int Reload(Terminal& terminal);

int Pause(Terminal& terminal, const std::string& which);
int Resume(Terminal& terminal, const std::string& which);
int Kill(Terminal& terminal, const std::string& which);

int Top(Terminal& terminal, admin::Duration period, bool once);
// Until `count` slices were printed; 0: for ever.
int Slices(Terminal& terminal, std::uint64_t count);

}  // namespace gpusched::ctl
