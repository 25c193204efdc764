// Keeps spare jobs, so that a job in steady state allocates nothing.
#include "executor/desk.h"

namespace gpusched::executor {

std::unique_ptr<core::Job> Desk::NewJob() {
  if (!spare_.empty()) {
    std::unique_ptr<core::Job> job = std::move(spare_.back());
    spare_.pop_back();
    return job;
  }
  auto job = std::make_unique<core::Job>();
  job->body = std::make_unique<Body>();
  return job;
}

void Desk::Recycle(std::unique_ptr<core::Job> job) {
  if (spare_.size() >= kSpareJobs) return;
  Body& body = static_cast<Body&>(*job->body);
  std::vector<StagingPtr> sources = std::move(body.sources);
  sources.clear();
  body = Body{};
  body.sources = std::move(sources);
  std::vector<core::Operation> operations = std::move(job->operations);
  operations.clear();
  std::unique_ptr<core::JobBody> kept = std::move(job->body);
  *job = core::Job{};
  job->operations = std::move(operations);
  job->body = std::move(kept);
  spare_.push_back(std::move(job));
}

}  // namespace gpusched::executor
