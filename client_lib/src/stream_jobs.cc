// A session's jobs: from Submit through the credit window to the report.
#include <cstring>
#include <utility>

#include "gpusched/reasons.h"
#include "stream.h"

namespace gpusched::internal {
namespace {

// Small pieces pass gRPC fastest (3.9 GB/s, against 2.3 for the wire's bound of 1 MiB).
constexpr std::uint64_t kPieceBytes = 64 << 10;

Status TooLarge(std::uint64_t bytes, std::uint64_t window) {
  return Status(StatusCode::kInvalidArgument, reason::kStagingExceeded,
                "the job writes " + std::to_string(bytes) + " bytes, the session's window holds " +
                    std::to_string(window) + ": write them in several jobs");
}

// The bytes of all sources one after the other; the sources name the copy from then on.
std::vector<std::byte> CopyOf(std::vector<Source>& sources, std::uint64_t bytes) {
  std::vector<std::byte> copy;
  copy.reserve(bytes);
  for (Source& source : sources) {
    const auto* const from = static_cast<const std::byte*>(source.from);
    source.from = copy.data() + copy.size();  // it does not move: there is room for all
    copy.insert(copy.end(), from, from + source.bytes);
  }
  return copy;
}

}  // namespace

Result<std::shared_ptr<JobRecord>> Stream::Submit(const Job& job, const SubmitOptions& options) {
  const Deadline called = Clock::now();
  if (forked()) return Forked();
  v1::ClientMessage message;
  Encoding::Encoded encoded;
  Status status =
      Encoding::Encode(*this, job, false, message.mutable_submit()->mutable_operations(), &encoded);
  if (!status.ok()) return status;
  return SubmitEncoded(message, encoded, nullptr, options, called);
}

Result<std::shared_ptr<JobRecord>> Stream::Submit(const std::shared_ptr<TemplateRecord>& made_from,
                                                  const Changes* changes,
                                                  const SubmitOptions& options) {
  const Deadline called = Clock::now();
  if (forked()) return Forked();
  v1::ClientMessage message;
  v1::Submit* submit = message.mutable_submit();
  submit->set_template_id(made_from->id);
  Encoding::Encoded encoded;
  encoded.targets = made_from->targets;
  encoded.sources = made_from->sources;
  encoded.staged_bytes = made_from->written.size();
  if (changes != nullptr) {
    Status status = Encoding::Encode(*this, *changes, made_from->shapes, submit, &encoded);
    if (!status.ok()) return status;
  }
  Encoding::TakeStagings(*this, submit, &encoded);
  return SubmitEncoded(message, encoded, made_from, options, called);
}

Result<std::shared_ptr<JobRecord>> Stream::SubmitEncoded(v1::ClientMessage& message,
                                                         Encoding::Encoded& encoded,
                                                         std::shared_ptr<TemplateRecord> made_from,
                                                         const SubmitOptions& options,
                                                         Deadline called) {
  if (Status status = CheckText("SubmitOptions::tag", options.tag); !status.ok()) return status;
  v1::Submit* submit = message.mutable_submit();
  submit->set_queue(options.queue);
  submit->set_deadline_ns(options.deadline.count());
  submit->set_skip_if_late(options.skip_if_late);
  if (!options.tag.empty()) submit->set_tag(options.tag);
  if (options.when_full == WhenFull::kFail) submit->set_when_full(v1::WHEN_FULL_FAIL);
  if (options.deadline < Duration::zero()) {
    return Status(StatusCode::kInvalidArgument, reason::kBadParameter,
                  "SubmitOptions::deadline is negative: it counts from the call of Submit");
  }
  if (encoded.staged_bytes > window_.bytes) return TooLarge(encoded.staged_bytes, window_.bytes);

  auto job = std::make_shared<JobRecord>();
  job->called = called;
  job->held = {.jobs = 1, .bytes = encoded.staged_bytes};
  job->targets = std::move(encoded.targets);
  job->reads = !job->targets.empty();
  job->on_done = options.on_done;
  job->called_back = static_cast<bool>(options.on_done);

  Exchange::Lock lock = exchange_.Enter();
  if (!ended_.ok()) return ended_;
  if (made_from && !made_from->failure.ok()) return made_from->failure;
  Status status = ClaimCredits(lock, job->held, options.when_full);
  if (!status.ok()) return status;
  if (!encoded.sources.empty()) status = Stage(lock, encoded.sources);
  if (status.ok()) {
    job->id = next_id_++;
    submit->set_job(job->id);
    status = exchange_.Send(message, called);
  }
  if (!status.ok()) {
    ReturnCredits(job->held);
    return status;
  }
  jobs_.emplace(job->id, job);
  if (made_from) {
    ++made_from->holders;
    job->made_from = std::move(made_from);
  }
  if (job->called_back) {
    ++callbacks_outstanding_;
    StartCallbacks();
  }
  exchange_.Flush(lock);
  return job;
}

Status Stream::ClaimCredits(Exchange::Lock& lock, Credits wanted, WhenFull when_full) {
  if (claims_.empty() && TakeCredits(wanted)) return Status::Ok();
  // Reports that nobody has read yet may make room.
  exchange_.Poll(lock);
  if (!ended_.ok()) return ended_;
  if (claims_.empty() && TakeCredits(wanted)) return Status::Ok();
  switch (when_full) {
    case WhenFull::kWait: break;
    case WhenFull::kFail:
      if (credits_.jobs < wanted.jobs) {
        return Status(StatusCode::kResourceExhausted, reason::kWindowExceeded,
                      std::to_string(window_.jobs) +
                          " jobs are outstanding, as many as the session may have: wait for one");
      }
      return Status(StatusCode::kResourceExhausted, reason::kStagingExceeded,
                    std::to_string(window_.bytes - credits_.bytes) + " of the session's " +
                        std::to_string(window_.bytes) +
                        " bytes for Write are outstanding: wait for a job");
  }
  Claim claim{.wanted = wanted, .granted = {}};
  claims_.push_back(&claim);
  exchange_.Await(lock, claim.granted, kNoDeadline);
  return ended_;
}

bool Stream::TakeCredits(Credits wanted) {
  if (credits_.jobs < wanted.jobs || credits_.bytes < wanted.bytes) return false;
  credits_.jobs -= wanted.jobs;
  credits_.bytes -= wanted.bytes;
  return true;
}

void Stream::ReturnCredits(Credits credits) {
  credits_.jobs += credits.jobs;
  credits_.bytes += credits.bytes;
  while (!claims_.empty() && TakeCredits(claims_.front()->wanted)) {
    exchange_.Complete(claims_.front()->granted);
    claims_.pop_front();
  }
}

Status Stream::Stage(Exchange::Lock& lock, const std::vector<Source>& sources) {
  for (const Source& source : sources) {
    for (std::uint64_t offset = 0; offset < source.bytes; offset += kPieceBytes) {
      v1::ClientMessage message;
      v1::Data* data = message.mutable_data();
      data->set_staging(source.staging);
      data->set_offset(offset);
      data->set_content(static_cast<const char*>(source.from) + offset,
                        std::min(kPieceBytes, source.bytes - offset));
      if (Status status = exchange_.Send(message); !status.ok()) return status;
      // The outbox holds a few pieces at most, however much is written.
      exchange_.Flush(lock);
      if (!ended_.ok()) return ended_;
    }
  }
  return Status::Ok();
}

Result<JobReport> Stream::Wait(JobRecord& job, Deadline deadline) {
  if (forked()) return Forked();
  Exchange::Lock lock = exchange_.Enter();
  if (exchange_.Await(lock, job.over, deadline)) return job.Outcome();
  return Status(StatusCode::kDeadlineExceeded, reason::kWaitTimedOut,
                "the job is not over yet: wait again, or cancel it");
}

bool Stream::Done(JobRecord& job) {
  if (forked()) return true;
  Exchange::Lock lock = exchange_.Enter();
  if (!job.over.done()) exchange_.Poll(lock);
  return job.over.done();
}

Status Stream::Cancel(const JobRecord& job) {
  if (forked()) return Forked();
  Exchange::Lock lock = exchange_.Enter();
  if (job.over.done()) return Status::Ok();
  if (!ended_.ok()) return ended_;
  v1::ClientMessage message;
  message.mutable_cancel()->set_job(job.id);
  if (Status status = exchange_.Send(message); !status.ok()) return status;
  exchange_.Flush(lock);
  return Status::Ok();
}

void Stream::DropReads(JobRecord& job) {
  if (!job.reads || job.called_back || forked()) return;
  const Exchange::Lock lock = exchange_.Enter();
  for (Target& target : job.targets) target.to = nullptr;
}

void Stream::ReceiveResult(const v1::Data& data) {
  const auto found = jobs_.find(data.staging());
  if (found == jobs_.end()) return;
  JobRecord& job = *found->second;
  const char* from = data.content().data();
  std::uint64_t left = data.content().size();
  while (left > 0 && job.target < job.targets.size()) {
    const Target& target = job.targets[job.target];
    const std::uint64_t bytes = std::min(left, target.bytes - job.filled);
    if (target.to != nullptr) std::memcpy(target.to + job.filled, from, bytes);
    from += bytes;
    left -= bytes;
    job.filled += bytes;
    if (job.filled < target.bytes) break;
    ++job.target;
    job.filled = 0;
  }
}

void Stream::ReceiveReport(const v1::JobReport& report) {
  const auto found = jobs_.find(report.job());
  if (found == jobs_.end()) return;
  std::shared_ptr<JobRecord> job = found->second;
  JobReport& to = job->report;
  to.why = DecodeError(report.error());
  to.in_client = Duration(report.client_ns());
  to.queued = Duration(report.queued_ns());
  to.run = Duration(report.run_ns());
  to.total = Clock::now() - job->called;
  to.returned = std::max(Duration::zero(), to.total - to.in_client - to.queued - to.run);
  to.charged = Duration(report.charged_ns());
  to.late = report.late();
  to.generation = report.generation();
  to.started = Duration(report.started_ns());
  to.ended = Duration(report.ended_ns());
  switch (report.outcome()) {
    case v1::JOB_OUTCOME_DONE:
      to.outcome = Outcome::kDone;
      if (job->target < job->targets.size()) {
        job->failure = Status(StatusCode::kInternal, reason::kMalformedFrame,
                              "the daemon reported the job done without sending all it reads");
      }
      break;
    case v1::JOB_OUTCOME_CANCELLED: to.outcome = Outcome::kCancelled; break;
    case v1::JOB_OUTCOME_SKIPPED: to.outcome = Outcome::kSkipped; break;
    case v1::JOB_OUTCOME_FAILED:
    case v1::JOB_OUTCOME_REFUSED:
    default:  // an open enumeration: what a later daemon may add is no success here
      job->failure = to.why;
      if (to.why.ok()) {
        job->failure = Status(StatusCode::kInternal, reason::kMalformedFrame,
                              "the daemon refused the job and gave no reason");
      }
      break;
  }
  // The template's own failure says more than that it does not exist.
  if (job->failure.reason() == reason::kUnknownTemplate && job->made_from &&
      !job->made_from->failure.ok()) {
    job->failure = job->made_from->failure;
  }
  Finish(std::move(job));
}

void Stream::Finish(std::shared_ptr<JobRecord> job) {
  jobs_.erase(job->id);
  ReturnCredits(job->held);
  if (job->made_from) Release(*job->made_from);
  exchange_.Complete(job->over);
  if (job->called_back) {
    --callbacks_outstanding_;
    callbacks_.push_back(std::move(job));
    if (callback_due_ != nullptr) exchange_.Complete(*callback_due_);
    return;
  }
  exchange_.Bury(std::move(job));
}

Result<std::shared_ptr<TemplateRecord>> Stream::RegisterTemplate(const Job& job) {
  if (forked()) return Forked();
  v1::ClientMessage message;
  Encoding::Encoded encoded;
  Status status = Encoding::Encode(
      *this, job, true, message.mutable_register_template()->mutable_operations(), &encoded);
  if (!status.ok()) return status;
  if (encoded.staged_bytes > window_.bytes) return TooLarge(encoded.staged_bytes, window_.bytes);
  const auto record = std::make_shared<TemplateRecord>();
  record->shapes = std::move(encoded.shapes);
  record->targets = std::move(encoded.targets);
  record->modules = std::move(encoded.modules);
  record->sources = std::move(encoded.sources);
  record->written = CopyOf(record->sources, encoded.staged_bytes);
  Exchange::Lock lock = exchange_.Enter();
  if (!ended_.ok()) return ended_;
  record->id = next_id_++;
  message.mutable_register_template()->set_template_id(record->id);
  if (status = exchange_.Send(message); !status.ok()) return status;
  templates_[record->id] = record.get();
  exchange_.Flush(lock);
  return record;
}

void Stream::ReleaseTemplate(TemplateRecord& record) {
  if (forked()) return;
  Exchange::Lock lock = exchange_.Enter();
  Release(record);
  if (ended_.ok()) exchange_.Flush(lock);
}

void Stream::Release(TemplateRecord& record) {
  if (--record.holders > 0) return;
  templates_.erase(record.id);
  // Not with the record, which the handles of its jobs still hold.
  std::vector<std::byte>().swap(record.written);
  if (!ended_.ok()) return;
  v1::ClientMessage message;
  message.mutable_forget_template()->set_template_id(record.id);
  static_cast<void>(exchange_.Send(message));  // a dozen bytes always fit
}

}  // namespace gpusched::internal
