// From the core's order to the device's command.
#pragma once

#include "core/action.h"
#include "device/device.h"

namespace gpusched::executor {

struct BoundOperation;
struct Launch;

// The whole of a checked launch.
device::LaunchCommand LaunchOf(const Launch&, const BoundOperation&, SessionId);

// Everything it points to lives in the job's body, until FinishJob.
device::Command MakeCommand(const core::StartCommand& order, Time now);

core::CommandFinished MakeFinished(device::Completion&& completion);

}  // namespace gpusched::executor
