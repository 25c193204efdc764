// The handles services hold: each checks that it names something and passes the call to its stream.
#include <utility>

#include "gpusched/client.h"
#include "stream.h"

namespace gpusched {
namespace {

Status MovedFrom(const char* what) {
  return Status(StatusCode::kFailedPrecondition, reason::kMovedFrom,
                std::string("the ") + what + " was moved from: use the one it was moved to");
}

// Now + limit, without end where that does not fit.
internal::Deadline DeadlineAfter(Duration limit) {
  const internal::Deadline now = internal::Clock::now();
  if (limit >= internal::kNoDeadline - now) return internal::kNoDeadline;
  if (limit <= Duration::zero()) return now;
  return now + limit;
}

}  // namespace

// Session

Session::Session(std::shared_ptr<internal::Stream> stream) : stream_(std::move(stream)) {}
Session::Session(Session&&) noexcept = default;

Session& Session::operator=(Session&& other) noexcept {
  if (this != &other) {
    Drop();
    stream_ = std::move(other.stream_);
  }
  return *this;
}

Session::~Session() { Drop(); }

void Session::Drop() {
  if (stream_) stream_->Close(false);
  stream_.reset();
}

Result<Module> Session::LoadModule(const ModuleImages& images) {
  if (!stream_) return MovedFrom("session");
  Result<std::shared_ptr<const internal::ModuleRecord>> record = stream_->LoadModule(images);
  if (!record) return record.status();
  return Module(*std::move(record));
}

Result<Buffer> Session::Allocate(std::uint64_t bytes) {
  if (!stream_) return MovedFrom("session");
  const Result<std::uint64_t> id = stream_->Allocate(bytes);
  if (!id) return id.status();
  return Buffer(stream_, *id, bytes);
}

Result<std::uint32_t> Session::OpenQueue() {
  if (!stream_) return MovedFrom("session");
  return stream_->OpenQueue();
}

Status Session::CloseQueue(std::uint32_t queue) {
  if (!stream_) return MovedFrom("session");
  return stream_->CloseQueue(queue);
}

Result<Template> Session::RegisterTemplate(const Job& job) {
  if (!stream_) return MovedFrom("session");
  Result<std::shared_ptr<internal::TemplateRecord>> record = stream_->RegisterTemplate(job);
  if (!record) return record.status();
  return Template(stream_, *std::move(record));
}

Result<Submission> Session::Submit(const Job& job, const SubmitOptions& options) {
  if (!stream_) return MovedFrom("session");
  Result<std::shared_ptr<internal::JobRecord>> record = stream_->Submit(job, options);
  if (!record) return record.status();
  return Submission(stream_, *std::move(record));
}

Result<Submission> Session::SubmitTemplate(const Template& job, const Changes* changes,
                                           const SubmitOptions& options) {
  if (!stream_) return MovedFrom("session");
  if (!job.record_) return MovedFrom("template");
  if (job.stream_ != stream_) {
    return Status(StatusCode::kInvalidArgument, reason::kUnknownTemplate,
                  "the template was registered in another session: register it in this one");
  }
  Result<std::shared_ptr<internal::JobRecord>> record =
      stream_->Submit(job.record_, changes, options);
  if (!record) return record.status();
  return Submission(stream_, *std::move(record));
}

Result<Submission> Session::Submit(const Template& job, const SubmitOptions& options) {
  return SubmitTemplate(job, nullptr, options);
}

Result<Submission> Session::Submit(const Template& job, const Changes& changes,
                                   const SubmitOptions& options) {
  return SubmitTemplate(job, &changes, options);
}

Status Session::ChangeShare(const DeclaredShare& share) {
  if (!stream_) return MovedFrom("session");
  return stream_->ChangeShare(share);
}

std::uint64_t Session::id() const { return stream_ ? stream_->id() : 0; }

const std::string& Session::name() const {
  static const std::string kNone;
  return stream_ ? stream_->name() : kNone;
}

const DeviceInfo& Session::device() const {
  static const DeviceInfo kNone;
  return stream_ ? stream_->device() : kNone;
}

DeclaredShare Session::share() const { return stream_ ? stream_->share() : DeclaredShare{}; }
std::uint64_t Session::memory() const { return stream_ ? stream_->memory() : 0; }
Window Session::window() const { return stream_ ? stream_->window() : Window{}; }

Status Session::Drain(Duration limit) {
  if (!stream_) return MovedFrom("session");
  return stream_->Drain(DeadlineAfter(limit));
}

Status Session::Close() {
  if (!stream_) return MovedFrom("session");
  stream_->Close(true);
  return Status::Ok();
}

// Buffer

Buffer::Buffer(std::shared_ptr<internal::Stream> stream, std::uint64_t id, std::uint64_t bytes)
    : stream_(std::move(stream)), id_(id), bytes_(bytes) {}

Buffer::Buffer(Buffer&& other) noexcept
    : stream_(std::move(other.stream_)),
      id_(std::exchange(other.id_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    static_cast<void>(Free());
    stream_ = std::move(other.stream_);
    id_ = std::exchange(other.id_, 0);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

// A session that has ended has freed it already.
Buffer::~Buffer() { static_cast<void>(Free()); }

std::uint64_t Buffer::bytes() const { return bytes_; }

BufferAt Buffer::At(std::uint64_t offset) const {
  return {.stream = stream_.get(), .buffer = id_, .offset = offset};
}

Status Buffer::Free() {
  if (!stream_) return MovedFrom("buffer");
  const std::shared_ptr<internal::Stream> stream = std::move(stream_);
  stream_.reset();
  bytes_ = 0;
  return stream->Free(std::exchange(id_, 0));
}

// Module

Module::Module(std::shared_ptr<const internal::ModuleRecord> record) : record_(std::move(record)) {}

const std::vector<KernelInfo>& Module::kernels() const {
  static const std::vector<KernelInfo> kNone;
  return record_ ? record_->kernels : kNone;
}

const std::string& Module::build_log() const {
  static const std::string kNone;
  return record_ ? record_->build_log : kNone;
}

Kernel Module::kernel(std::string_view name) const { return Kernel(record_, std::string(name)); }

internal::ModuleRecord::~ModuleRecord() {
  if (stream) stream->UnloadModule(id);
}

Status internal::ModuleRecord::Check(const Stream& by, const std::string& kernel) const {
  if (stream.get() != &by) {
    return Status(StatusCode::kInvalidArgument, reason::kUnknownModule,
                  "kernel '" + kernel + "' is of a module of another session: load it in this one");
  }
  std::string names;
  for (const KernelInfo& known : kernels) {
    if (known.name == kernel) return Status::Ok();
    names += (names.empty() ? "" : ", ") + known.name;
  }
  return Status(StatusCode::kNotFound, reason::kUnknownKernel,
                "the module has no kernel '" + kernel + "'; it has: " + names);
}

// Submission

Submission::Submission(std::shared_ptr<internal::Stream> stream,
                       std::shared_ptr<internal::JobRecord> job)
    : stream_(std::move(stream)), job_(std::move(job)) {}
Submission::Submission(Submission&&) noexcept = default;

Submission& Submission::operator=(Submission&& other) noexcept {
  if (this != &other) {
    Drop();
    stream_ = std::move(other.stream_);
    job_ = std::move(other.job_);
  }
  return *this;
}

Submission::~Submission() { Drop(); }

void Submission::Drop() {
  if (job_) stream_->DropReads(*job_);
  job_.reset();
  stream_.reset();
}

Result<JobReport> Submission::Wait() {
  if (!job_) return MovedFrom("submission");
  return stream_->Wait(*job_, internal::kNoDeadline);
}

Result<JobReport> Submission::Wait(Duration limit) {
  if (!job_) return MovedFrom("submission");
  return stream_->Wait(*job_, DeadlineAfter(limit));
}

bool Submission::Done() { return !job_ || stream_->Done(*job_); }

Status Submission::Cancel() {
  if (!job_) return MovedFrom("submission");
  return stream_->Cancel(*job_);
}

std::uint64_t Submission::id() const { return job_ ? job_->id : 0; }

// Template

Template::Template(std::shared_ptr<internal::Stream> stream,
                   std::shared_ptr<internal::TemplateRecord> record)
    : stream_(std::move(stream)), record_(std::move(record)) {}
Template::Template(Template&&) noexcept = default;

Template& Template::operator=(Template&& other) noexcept {
  if (this != &other) {
    Drop();
    stream_ = std::move(other.stream_);
    record_ = std::move(other.record_);
  }
  return *this;
}

Template::~Template() { Drop(); }

void Template::Drop() {
  if (record_) stream_->ReleaseTemplate(*record_);
  record_.reset();
  stream_.reset();
}

}  // namespace gpusched
