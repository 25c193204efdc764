// A session's jobs: from Submit to the core, and from the core to the report.
#include <algorithm>
#include <utility>

#include "executor/session.h"
#include "gpusched/reasons.h"
#include "gpusched/units.h"

namespace gpusched::executor {
namespace {

Body& BodyOf(core::Job& job) { return static_cast<Body&>(*job.body); }

bool ChangesLaunches(const Program& program, const std::vector<ArgumentChange>& changes) {
  return std::any_of(changes.begin(), changes.end(), [&](const ArgumentChange& change) {
    return change.operation >= program.operations.size() ||
           std::holds_alternative<Launch>(program.operations[change.operation]->asked);
  });
}

Status MissingStaging(std::uint64_t staging, std::uint64_t has, std::uint64_t wanted) {
  return Status(StatusCode::kInvalidArgument, reason::kDataOutOfOrder,
                "staging " + std::to_string(staging) + " holds " + std::to_string(has) +
                    " of the " + std::to_string(wanted) +
                    " bytes to copy; send its Data before the Submit");
}

Outcome OutcomeOf(core::JobOutcome outcome) {
  switch (outcome) {
    case core::JobOutcome::kDone: return Outcome::kDone;
    case core::JobOutcome::kCancelled: return Outcome::kCancelled;
    case core::JobOutcome::kSkipped: return Outcome::kSkipped;
    case core::JobOutcome::kFailed: return Outcome::kFailed;
  }
  return Outcome::kFailed;
}

// Where the core has no more to say than what became of the job.
Status WhyNotDone(core::JobOutcome outcome) {
  switch (outcome) {
    case core::JobOutcome::kDone:
    case core::JobOutcome::kFailed: break;
    case core::JobOutcome::kCancelled:
      return Status(StatusCode::kCancelled, reason::kCancelled,
                    "cancelled by the client, by itself or with its queue or session");
    case core::JobOutcome::kSkipped:
      return Status(StatusCode::kDeadlineExceeded, reason::kSkippedLate,
                    "skipped: it could not have been on time any more, and skip_if_late says that "
                    "it is then not worth running");
  }
  return Status::Ok();
}

}  // namespace

void Session::On(Submit& submit, Time received) {
  TakenStagings taken;
  // The hot path has neither operations nor changes, and so no stagings.
  if (!submit.operations.empty() || !submit.changes.empty()) taken = TakeStagings(submit);
  std::uint64_t staged = 0;
  for (const auto& [id, incoming] : taken) staged += incoming.staging->content.size();

  Status refusal = Refusal(submit);
  std::shared_ptr<Program> program;
  std::unique_ptr<core::Job> job = desk_.NewJob();
  if (refusal.ok()) {
    Result<std::shared_ptr<Program>> made = ProgramOf(submit);
    if (made.ok()) {
      program = *std::move(made);
    } else {
      refusal = made.status();
    }
  }
  if (refusal.ok()) refusal = Unusable(*program);
  if (refusal.ok() && program->has_copies_in) {
    refusal = AttachSources(submit, *program, taken, BodyOf(*job));
  }
  if (!refusal.ok()) {
    staged_bytes_ -= staged;
    desk_.Recycle(std::move(job));
    return Refuse(submit, std::move(refusal));
  }
  BodyOf(*job).staged_bytes = staged;
  Accept(submit, received, std::move(program), std::move(job));
}

Status Session::Refusal(const Submit& submit) const {
  if (!open()) {
    if (!why_.ok()) return why_;
    return Status(StatusCode::kFailedPrecondition, reason::kSessionClosed,
                  "the session said goodbye; open another one");
  }
  if (jobs_.contains(submit.job)) {
    return Status(StatusCode::kAlreadyExists, reason::kIdInUse,
                  "job " + std::to_string(submit.job) + " is outstanding; number jobs anew");
  }
  if (jobs_.size() >= window_jobs_) {
    return Status(StatusCode::kResourceExhausted, reason::kWindowExceeded,
                  std::to_string(jobs_.size()) +
                      " jobs are outstanding, as many as the window has; wait for a report first");
  }
  if (submit.queue > 63 || (open_queues_ >> submit.queue & 1) == 0) {
    std::string known;
    for (std::uint32_t queue = 0; queue < 64; ++queue) {
      if ((open_queues_ >> queue & 1) == 0) continue;
      known += (known.empty() ? "" : ", ") + std::to_string(queue);
    }
    return Status(StatusCode::kNotFound, reason::kUnknownQueue,
                  "no queue " + std::to_string(submit.queue) + "; open are " + known);
  }
  if (submit.template_id == 0 && submit.operations.empty()) {
    return Status(StatusCode::kInvalidArgument, reason::kEmptyJob,
                  "the job has neither operations nor a template");
  }
  if (submit.template_id != 0 && !submit.operations.empty()) {
    return Status(StatusCode::kInvalidArgument, reason::kMalformedFrame,
                  "the job has a template and operations; it can have one of them");
  }
  return Status::Ok();
}

Result<std::shared_ptr<Program>> Session::ProgramOf(Submit& submit) const {
  if (submit.template_id == 0) return binder_.Bind(std::move(submit.operations));
  const auto at = templates_.find(submit.template_id);
  if (at == templates_.end()) {
    std::string known;
    for (const auto& [id, _] : templates_) {
      if (known.size() > 64) break;
      known += (known.empty() ? "" : ", ") + std::to_string(id);
    }
    return Status(StatusCode::kNotFound, reason::kUnknownTemplate,
                  "no template " + std::to_string(submit.template_id) + "; there " +
                      (known.empty() ? "are none" : "are " + known));
  }
  if (!at->second.error.ok()) return at->second.error;
  if (!ChangesLaunches(*at->second.program, submit.changes)) return at->second.program;
  return binder_.Change(*at->second.program, submit.changes);
}

// A template may name what was freed since; a job never does.
Status Session::Unusable(const Program& program) const {
  for (const ResourcePtr& resource : program.named) {
    if (!resource->dropped) continue;
    const bool module = resource->kind == Resource::Kind::kModule;
    return Status(StatusCode::kNotFound, module ? reason::kUnknownModule : reason::kUnknownBuffer,
                  (module ? "module " : "buffer ") + std::to_string(resource->id) +
                      ", which the template names, was freed; register it anew");
  }
  return Status::Ok();
}

Session::TakenStagings Session::TakeStagings(const Submit& submit) {
  TakenStagings taken;
  const auto take = [&](std::uint64_t id) {
    auto node = stagings_.extract(id);
    if (!node.empty()) taken.emplace_back(id, std::move(node.mapped()));
  };
  for (const Operation& operation : submit.operations) {
    if (const auto* in = std::get_if<CopyIn>(&operation)) take(in->staging);
  }
  for (const ArgumentChange& change : submit.changes) {
    if (change.staging != 0) take(change.staging);
  }
  return taken;
}

// Every copy into a buffer gets its bytes: from its own staging or, in a template, from a change.
Status Session::AttachSources(const Submit& submit, const Program& program,
                              const TakenStagings& taken, Body& body) const {
  body.sources.assign(program.operations.size(), nullptr);
  std::vector<std::uint64_t> stagings(program.operations.size(), 0);
  for (const ArgumentChange& change : submit.changes) stagings[change.operation] = change.staging;
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const auto* in = std::get_if<CopyIn>(&program.operations[i]->asked);
    if (in == nullptr) continue;
    const std::uint64_t staging = submit.template_id == 0 ? in->staging : stagings[i];
    const auto at = std::find_if(taken.begin(), taken.end(),
                                 [&](const auto& entry) { return entry.first == staging; });
    if (at == taken.end()) return MissingStaging(staging, 0, in->bytes);
    if (!at->second.error.ok()) return at->second.error;
    const std::uint64_t has = at->second.staging->content.size();
    if (has != in->bytes) return MissingStaging(staging, has, in->bytes);
    body.sources[i] = at->second.staging;
  }
  return Status::Ok();
}

void Session::Accept(Submit& submit, Time received, std::shared_ptr<Program> program,
                     std::unique_ptr<core::Job> job) {
  job->session = id_;
  job->id = submit.job;
  job->queue = submit.queue;
  job->received = received;
  const Duration in_client = std::clamp(submit.in_client, Duration::zero(), kLongestClientTime);
  job->arrived = received - in_client;
  const Duration target =
      submit.deadline > Duration::zero() ? submit.deadline : share_.latency_target;
  job->deadline = target > Duration::zero() ? After(job->arrived, target) : kNever;
  job->skip_if_late = submit.skip_if_late;

  Body& body = BodyOf(*job);
  body.session = this;
  body.template_id = submit.template_id;
  body.in_client = in_client;
  body.tag = std::move(submit.tag);
  // A program that no template keeps is counted while the job lives.
  if (submit.template_id == 0 || !submit.changes.empty()) body.held_bytes = program->held_bytes;
  if (program_bytes_ + body.held_bytes > kProgramBytes) {
    staged_bytes_ -= body.staged_bytes;
    desk_.Recycle(std::move(job));
    return Refuse(submit, Status(StatusCode::kResourceExhausted, reason::kTooMany,
                                 "the session's templates and jobs would take more than " +
                                     FormatBytes(kProgramBytes) + "; wait for some reports"));
  }
  program_bytes_ += body.held_bytes;
  for (const ResourcePtr& resource : program->named) ++resource->jobs;
  body.program = std::move(program);
  jobs_.emplace(job->id, job.get());
  body.held = true;
  if ((!held_.empty() && held_.contains(job->queue)) || !TryStart(job)) {
    held_[job->queue].push_back(std::move(job));
  }
}

void Session::Refuse(const Submit& submit, Status why) {
  Record(submit.job, submit.tag, Outcome::kRefused, why);
  Send(JobReport{.job = submit.job,
                 .outcome = Outcome::kRefused,
                 .error = std::move(why),
                 .in_client = submit.in_client});
}

// False: it must wait. Else the job went to the core, or its refusal to the client.
bool Session::TryStart(std::unique_ptr<core::Job>& job) {
  Body& body = BodyOf(*job);
  Program& program = *body.program;
  if (!program.checked) {
    if (!program.settled()) return false;
    if (Status fault = binder_.Check(program, body.template_id); !fault.ok()) {
      Over(std::move(job), Outcome::kRefused, fault);
      return true;
    }
  }
  if (program.result_bytes > 0) {
    if (result_bytes_ > 0 && result_bytes_ + program.result_bytes > kResultWindow) return false;
    result_bytes_ += program.result_bytes;
  }
  body.held = false;
  job->operations.assign(program.extents.begin(), program.extents.end());
  desk_.Tell(core::JobSubmitted{std::move(job)});
  return true;
}

void Session::StartHeld() {
  for (auto at = held_.begin(); at != held_.end();) {
    auto& jobs = at->second;
    while (!jobs.empty() && TryStart(jobs.front())) jobs.pop_front();
    at = jobs.empty() ? held_.erase(at) : std::next(at);
  }
  CloseIfFinished();
}

void Session::On(Cancel& cancel) {
  const auto at = jobs_.find(cancel.job);
  if (at == jobs_.end()) return;  // too late: its own report tells
  core::Job& job = *at->second;
  if (!BodyOf(job).held) {
    desk_.Tell(core::JobCancelled{id_, cancel.job});
    return;
  }
  const auto line = held_.find(job.queue);
  const auto place = std::find_if(line->second.begin(), line->second.end(),
                                  [&](const auto& candidate) { return candidate.get() == &job; });
  std::unique_ptr<core::Job> cancelled = std::move(*place);
  line->second.erase(place);
  Over(std::move(cancelled), Outcome::kCancelled,
       Status(StatusCode::kCancelled, reason::kCancelled, "cancelled by the client"));
  StartHeld();
}

void Session::On(CloseQueue& close) {
  const std::uint32_t queue = close.queue;
  if (queue == 0 || queue > 63 || (open_queues_ >> queue & 1) == 0) {
    return SendAnswer(
        Answer::Subject::kQueue, queue,
        Status(StatusCode::kNotFound, reason::kUnknownQueue,
               "queue " + std::to_string(queue) + " is not open, or is queue 0, which always is"));
  }
  open_queues_ &= ~(std::uint64_t{1} << queue);
  const Status why(StatusCode::kCancelled, reason::kCancelled, "its queue was closed");
  if (auto line = held_.extract(queue); !line.empty()) {
    for (auto& job : line.mapped()) Over(std::move(job), Outcome::kCancelled, why);
  }
  std::vector<std::uint64_t> waiting;
  for (const auto& [id, job] : jobs_) {
    if (job->queue == queue && job->state == core::Job::State::kWaiting) waiting.push_back(id);
  }
  std::sort(waiting.begin(), waiting.end());
  for (const std::uint64_t id : waiting) desk_.Tell(core::JobCancelled{id_, id});
  CloseIfFinished();
}

void Session::JobFinished(std::unique_ptr<core::Job> job, core::JobOutcome outcome) {
  const Status error = job->error.ok() ? WhyNotDone(outcome) : job->error;
  Over(std::move(job), OutcomeOf(outcome), error);
  CloseIfFinished();
}

void Session::JobRefused(std::unique_ptr<core::Job> job, const Status& why) {
  Over(std::move(job), Outcome::kRefused, why);
  CloseIfFinished();
}

// The job's end, whoever ended it: results, report, and everything it held given back.
void Session::Over(std::unique_ptr<core::Job> job, Outcome outcome, const Status& error) {
  Body& body = BodyOf(*job);
  Program& program = *body.program;
  jobs_.erase(job->id);
  Record(job->id, body.tag, outcome, error);
  tally_.charged += job->charged;
  staged_bytes_ -= body.staged_bytes;
  program_bytes_ -= body.held_bytes;
  const bool results = outcome == Outcome::kDone && program.result_bytes > 0 && port_ != nullptr;
  if (results) {
    std::erase_if(body.results, [](const Piece& piece) { return piece.size == 0; });
    Send(JobResult{job->id, std::move(body.results)});
  } else if (!body.held) {
    result_bytes_ -= program.result_bytes;
  }
  const bool started = job->first_start != Time{};
  const Time end = started ? job->last_end : desk_.now;
  Send(JobReport{
      .job = job->id,
      .outcome = outcome,
      .error = error,
      .in_client = body.in_client,
      .queued = (started ? job->first_start : desk_.now) - job->received,
      .run = started ? job->last_end - job->first_start : Duration::zero(),
      .charged = job->charged,
      .late = job->deadline != kNever && (outcome == Outcome::kSkipped || end > job->deadline),
      .generation = job->generation,
      .started = job->first_start,
      .ended = job->last_end});
  for (const ResourcePtr& resource : program.named) {
    --resource->jobs;
    ReleaseIfUnused(resource);
  }
  desk_.Recycle(std::move(job));
}

void Session::Record(std::uint64_t job, const std::string& tag, Outcome outcome,
                     const Status& error) {
  switch (outcome) {
    case Outcome::kDone: ++tally_.done; return;
    case Outcome::kCancelled: ++tally_.cancelled; return;
    case Outcome::kSkipped: ++tally_.skipped; return;
    case Outcome::kFailed: ++tally_.failed; break;
    case Outcome::kRefused: ++tally_.refused; break;
  }
  desk_.refusals.Warning(
      desk_.now, "session " + std::to_string(id_.serial) + " '" + name_ + "': job " +
                     std::to_string(job) + (tag.empty() ? "" : " [" + tag + "]") +
                     (outcome == Outcome::kFailed ? " failed: " : " refused: ") + error.ToString());
}

void Session::ResultsSent(std::uint64_t bytes) {
  result_bytes_ -= bytes;
  StartHeld();
}

std::size_t Session::held_jobs() const {
  std::size_t count = 0;
  for (const auto& [_, jobs] : held_) count += jobs.size();
  return count;
}

}  // namespace gpusched::executor
