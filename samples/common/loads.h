// The two kinds of load: jobs that are due at given instants, and one after the other without end.
#pragma once

#include <gpusched/client.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace samples {

enum class Fate : std::uint8_t {
  kUnfinished,
  kDone,
  kSkipped,  // it could not have been on time and did not run
  kFailed,   // refused, cancelled, or lost with its session
};

struct LoadedJob {
  Fate fate = Fate::kUnfinished;
  gpusched::Duration latency{0};  // from the instant it was due, or submitted, to its results
  gpusched::JobReport report;     // where done
};

struct LoadOutcome {
  std::vector<LoadedJob> jobs;  // in the order in which they were due
  gpusched::Duration elapsed{0};
  gpusched::Status first_error;
};

// Submits job `index`.
using SubmitIndexed = std::function<gpusched::Result<gpusched::Submission>(
    std::size_t index, const gpusched::SubmitOptions&)>;

// Job i is submitted at `due[i]` after the start, whatever became of those before it; what it reads
// must live until this returns. A full window is a failure: the load does not wait. Ends at once
// with its session.
LoadOutcome RunWhenDue(const std::vector<gpusched::Duration>& due, const SubmitIndexed& submit,
                       gpusched::SubmitOptions options = {});

// Instants at random (Poisson), `per_second` on average; and evenly, one every `period`.
std::vector<gpusched::Duration> RandomInstants(double per_second, gpusched::Duration length,
                                               std::uint32_t seed);
std::vector<gpusched::Duration> EvenInstants(gpusched::Duration period, gpusched::Duration length);

// Keeps `outstanding` jobs on their way for so long, then waits for those. Ends with the first
// failure. `done` is told of each job that is done, in order, on the calling thread.
LoadOutcome RunBackToBack(
    gpusched::Duration length, std::size_t outstanding, const SubmitIndexed& submit,
    const std::function<void(std::size_t index)>& done = [](std::size_t) {});

}  // namespace samples
