// What the library remembers of the jobs, templates and modules of a session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "call.h"
#include "encoding.h"
#include "exchange.h"
#include "gpusched/module.h"
#include "gpusched/submission.h"

namespace gpusched::internal {

// A part of the credit window: jobs and staged bytes that may be outstanding.
struct Credits {
  std::uint64_t jobs = 0;
  std::uint64_t bytes = 0;
};

// A submitted job. What follows `over` is guarded by the stream's lock until `over` is done and
// does not change afterwards.
struct JobRecord {
  std::uint64_t id = 0;
  Deadline called{};  // when Submit was
  Credits held;
  bool reads = false;        // into the caller's memory
  bool called_back = false;  // on_done was given
  std::shared_ptr<TemplateRecord> made_from;
  std::function<void(const Result<JobReport>&)> on_done;

  Exchange::Awaited over;
  std::vector<Target> targets;
  std::size_t target = 0;    // the next byte goes here,
  std::uint64_t filled = 0;  // after so many
  Status failure;            // where there is no report to give
  JobReport report;

  Result<JobReport> Outcome() const {
    if (!failure.ok()) return failure;
    return report;
  }
};

struct TemplateRecord {
  std::uint64_t id = 0;
  std::vector<Encoding::Shape> shapes;
  std::vector<Target> targets;
  std::vector<Source> sources;     // from `written`
  std::vector<std::byte> written;  // what its Writes named when it was registered
  std::vector<std::shared_ptr<const ModuleRecord>> modules;
  // Guarded by the stream's lock.
  std::uint32_t holders = 1;  // the handle and the submissions that are not over
  Status failure;             // the daemon's, once known
};

// Unloads the module when the last handle, job or template that names it is gone.
struct ModuleRecord {
  std::shared_ptr<Stream> stream;
  std::uint64_t id = 0;
  std::vector<KernelInfo> kernels;
  std::string build_log;

  ~ModuleRecord();
  // Whether `by` may launch the kernel.
  Status Check(const Stream& by, const std::string& kernel) const;
};

}  // namespace gpusched::internal
