// Opens, runs and times jobs.
#include "common/computing_session.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace samples {

using gpusched::Duration;
using gpusched::Result;
using gpusched::Status;

namespace {

// The first run of a kernel is slower and comes before these.
constexpr int kRuns = 7;
// The second correction is already within a few percent.
constexpr int kCorrections = 3;
constexpr double kCloseEnough = 0.03;

Status NotDone(const gpusched::JobReport& report) {
  return report.why.ok() ? Status(gpusched::StatusCode::kCancelled, "NOT_DONE",
                                  "the daemon did not run a job of this sample")
                         : report.why;
}

Result<gpusched::JobReport> Await(Result<gpusched::Submission> submission) {
  if (!submission.ok()) return submission.status();
  Result<gpusched::JobReport> report = submission->Wait();
  if (report.ok() && report->outcome != gpusched::Outcome::kDone) return NotDone(*report);
  return report;
}

}  // namespace

Result<gpusched::Session> OpenComputingSession(const CommonOptions& options,
                                               gpusched::SessionOptions session_options) {
  auto client = gpusched::Client::Connect({.endpoint = options.endpoint});
  if (!client.ok()) return client.status();
  session_options.device = options.device;
  auto session = client->OpenSession(session_options);
  if (session.ok() && session->device().backend == "virtual") {
    return Status(gpusched::StatusCode::kFailedPrecondition, "COMPUTES_NOTHING",
                  "device " + session->device().uuid +
                      " is virtual and computes nothing: start gpuschedd with --device=opencl, or "
                      "name another device with --device");
  }
  return session;
}

Status RunOnce(gpusched::Session& session, const gpusched::Job& job) {
  return Await(session.Submit(job)).status();
}

Result<Duration> TimeAlone(const std::function<Result<gpusched::Submission>()>& submit) {
  Duration shortest = Duration::max();
  for (int run = 0; run <= kRuns; ++run) {
    const Result<gpusched::JobReport> report = Await(submit());
    if (!report.ok()) return report.status();
    if (run > 0) shortest = std::min(shortest, report->charged);
  }
  return shortest;
}

std::size_t Size::launches() const {
  if (launch <= Duration::zero()) return 1;
  return static_cast<std::size_t>(std::max<std::int64_t>(1, (alone + launch / 2) / launch));
}

Size SizeOf(const CommonOptions& options, Duration alone, Duration launch) {
  return {.alone = alone, .launch = launch, .amount = options.smallest ? std::size_t{1} : 0};
}

Result<std::size_t> FindAmount(const Size& size, std::size_t unit, std::size_t most,
                               const std::function<Result<Duration>(std::size_t)>& time) {
  if (size.amount != 0) return std::clamp(size.amount / unit * unit, unit, most);
  std::size_t amount = std::min(8 * unit, most);
  for (int i = 0; i < kCorrections; ++i) {
    const Result<Duration> took = time(amount);
    if (!took.ok()) return took.status();
    const double factor = static_cast<double>(size.alone.count()) /
                          static_cast<double>(std::max<std::int64_t>(took->count(), 1));
    if (factor > 1 - kCloseEnough && factor < 1 + kCloseEnough) break;
    const double units = static_cast<double>(amount) * factor / static_cast<double>(unit);
    amount = std::clamp(static_cast<std::size_t>(units + 0.5) * unit, unit, most);
  }
  return amount;
}

}  // namespace samples
