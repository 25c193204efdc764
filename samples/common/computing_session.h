// A session on a device that computes, and how long one of its jobs takes when it has the device
// alone.
#pragma once

#include <gpusched/client.h>

#include <cstddef>
#include <functional>
#include <string>

#include "common/command_line.h"

namespace samples {

// FAILED_PRECONDITION where the device computes nothing.
gpusched::Result<gpusched::Session> OpenComputingSession(const CommonOptions& options,
                                                         gpusched::SessionOptions session);

// Submits a job and waits until it was done; anything else is an error.
gpusched::Status RunOnce(gpusched::Session& session, const gpusched::Job& job);

// What a job is charged, the least of several runs: the time it keeps the device from others, its
// launch gaps included. What else goes on in the machine only ever adds to it.
gpusched::Result<gpusched::Duration> TimeAlone(
    const std::function<gpusched::Result<gpusched::Submission>()>& submit);

// How large a job is to be.
struct Size {
  gpusched::Duration alone{0};   // device time of a job that has the device to itself
  gpusched::Duration launch{0};  // of one of its launches, about
  std::size_t amount = 0;        // of rows, points ...; 0: found by measuring

  std::size_t launches() const;
};

// The size that takes `alone`, or with --smallest the smallest there is.
Size SizeOf(const CommonOptions& options, gpusched::Duration alone, gpusched::Duration launch);

// The amount given, or the one that takes size.alone: `time` measures an amount. Amounts are
// multiples of `unit`, from `unit` to `most`.
gpusched::Result<std::size_t> FindAmount(
    const Size& size, std::size_t unit, std::size_t most,
    const std::function<gpusched::Result<gpusched::Duration>(std::size_t amount)>& time);

}  // namespace samples
