// A session's resources and its life; its jobs are in session_jobs.cc.
#include "executor/session.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "executor/admission.h"
#include "gpusched/reasons.h"
#include "gpusched/units.h"

namespace gpusched::executor {
namespace {

template <typename Table>
std::string Listed(const Table& table, std::string_view what) {
  if (table.empty()) return "the session has no " + std::string(what);
  std::string text = "there are ";
  std::size_t listed = 0;
  for (const auto& [id, _] : table) {
    if (listed == kNamesInMessage) return text + ", ...";
    text += (listed++ == 0 ? "" : ", ") + std::to_string(id);
  }
  return text;
}

ResourcePtr Find(const std::map<std::uint64_t, ResourcePtr>& table, std::uint64_t id) {
  const auto at = table.find(id);
  return at == table.end() ? nullptr : at->second;
}

}  // namespace

Session::Session(Desk& desk, SessionId id, std::shared_ptr<SessionPort> port, const Hello& hello,
                 Share granted)
    : desk_(desk),
      id_(id),
      port_(std::move(port)),
      name_(hello.name),
      client_(hello.client),
      peer_(hello.peer),
      share_(granted),
      quota_(hello.memory_bytes),
      window_jobs_(desk.limits.window_jobs),
      window_bytes_(desk.limits.window_bytes),
      opened_(desk.now),
      finder_{.module = [this](std::uint64_t i) { return Find(modules_, i); },
              .buffer = [this](std::uint64_t i) { return Find(buffers_, i); },
              .modules_known = [this] { return Listed(modules_, "module"); },
              .buffers_known = [this] { return Listed(buffers_, "buffer"); }},
      binder_(desk.device, id, finder_),
      jobs_(&desk.nodes) {
  desk_.min_sum += share_.min;
}

void Session::Handle(ClientMessage& message, Time received) {
  std::visit(
      [&](auto& what) {
        using What = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<What, Submit>) {
          On(what, received);
        } else if constexpr (std::is_same_v<What, Goodbye>) {
          Finish(Status::Ok());
        } else if constexpr (!std::is_same_v<What, Hello>) {  // the stream lets no second one pass
          On(what);
        }
      },
      message);
}

Status Session::NewResourceFault(const std::map<std::uint64_t, ResourcePtr>& table,
                                 std::uint64_t id, std::size_t most) const {
  if (!open()) {
    return Status(StatusCode::kFailedPrecondition, reason::kSessionClosed,
                  "the session is ending; open another one");
  }
  // A failed one may be tried again; until then jobs that name it find out why.
  if (const auto at = table.find(id);
      at != table.end() && at->second->state != Resource::State::kFailed) {
    return Status(StatusCode::kAlreadyExists, reason::kIdInUse,
                  "id " + std::to_string(id) + " is in use; choose another one or free it first");
  }
  if (table.size() >= most) {
    return Status(
        StatusCode::kResourceExhausted, reason::kTooMany,
        "the session has " + std::to_string(table.size()) + " already, as many as it may");
  }
  return Status::Ok();
}

ResourcePtr Session::NewResource(Resource::Kind kind, std::uint64_t id) {
  auto resource = std::make_shared<Resource>();
  resource->kind = kind;
  resource->id = id;
  resource->device_id = ++last_device_id_;
  return resource;
}

void Session::On(LoadModule& load) {
  Status fault = NewResourceFault(modules_, load.module, kModulesPerSession);
  if (fault.ok() && load.images.empty()) {
    fault = Status(StatusCode::kInvalidArgument, reason::kBadModule,
                   "the module has no image; send at least one");
  }
  if (!fault.ok()) {
    Send(ModuleLoaded{.module = load.module, .error = std::move(fault), .info = {}});
    return;
  }
  ResourcePtr module = NewResource(Resource::Kind::kModule, load.module);
  modules_.insert_or_assign(load.module, module);
  ++preparing_;
  const std::uint64_t device_id = module->device_id;
  desk_.Prepare(*this, std::move(module),
                device::LoadModule{id_, device_id, std::move(load.images)});
}

void Session::On(UnloadModule& unload) {
  if (!modules_.contains(unload.module)) {
    SendAnswer(
        Answer::Subject::kModule, unload.module,
        Status(StatusCode::kNotFound, reason::kUnknownModule,
               "no module " + std::to_string(unload.module) + "; " + finder_.modules_known()));
    return;
  }
  Drop(modules_, unload.module);
}

void Session::On(Allocate& allocate) {
  Status fault = NewResourceFault(buffers_, allocate.buffer, kBuffersPerSession);
  if (fault.ok() && allocate.bytes == 0) {
    fault = Status(StatusCode::kInvalidArgument, reason::kOutOfBounds,
                   "a buffer of zero bytes; it must have at least one");
  }
  if (!fault.ok()) {
    SendAnswer(Answer::Subject::kBuffer, allocate.buffer, std::move(fault));
    return;
  }
  ResourcePtr buffer = NewResource(Resource::Kind::kBuffer, allocate.buffer);
  buffer->bytes = allocate.bytes;
  buffers_.insert_or_assign(allocate.buffer, buffer);
  ++preparing_;
  const std::uint64_t device_id = buffer->device_id;
  desk_.Prepare(*this, std::move(buffer), device::Allocate{id_, device_id, allocate.bytes});
}

void Session::On(executor::Free& free) {
  if (!buffers_.contains(free.buffer)) {
    SendAnswer(Answer::Subject::kBuffer, free.buffer,
               Status(StatusCode::kNotFound, reason::kUnknownBuffer,
                      "no buffer " + std::to_string(free.buffer) + "; " + finder_.buffers_known()));
    return;
  }
  Drop(buffers_, free.buffer);
}

void Session::Drop(std::map<std::uint64_t, ResourcePtr>& table, std::uint64_t id) {
  const auto node = table.extract(id);
  node.mapped()->dropped = true;
  ReleaseIfUnused(node.mapped());
}

void Session::ReleaseIfUnused(const ResourcePtr& resource) {
  if (!resource->dropped || resource->jobs > 0 || resource->state != Resource::State::kReady)
    return;
  if (phase_ == Phase::kGone) return;  // the device closes the session as a whole
  resource->state = Resource::State::kReleasing;
  ++preparing_;
  if (resource->kind == Resource::Kind::kModule) {
    desk_.Prepare(*this, resource, device::UnloadModule{id_, resource->device_id});
  } else {
    desk_.Prepare(*this, resource, device::Free{id_, resource->device_id});
  }
}

bool Session::Prepared(const ResourcePtr& resource, device::Prepared prepared) {
  if (resource == nullptr) return true;
  --preparing_;
  const bool module = resource->kind == Resource::Kind::kModule;
  if (resource->state == Resource::State::kReleasing) {
    if (!module) memory_used_ -= resource->bytes;
  } else {
    Settle(*resource, prepared);
    if (module) {
      Send(ModuleLoaded{resource->id, prepared.status, resource->info});
    } else {
      SendAnswer(Answer::Subject::kBuffer, resource->id, prepared.status);
    }
    ReleaseIfUnused(resource);
    SettleTemplates();
    StartHeld();
  }
  if (phase_ == Phase::kGone) ReleaseFromDevice();
  return false;
}

void Session::Settle(Resource& resource, device::Prepared& prepared) {
  const bool module = resource.kind == Resource::Kind::kModule;
  if (prepared.status.ok()) {
    resource.state = Resource::State::kReady;
    if (module) resource.info = std::move(prepared.module);
    if (!module) memory_used_ += resource.bytes;
    return;
  }
  resource.state = Resource::State::kFailed;
  resource.error = prepared.status;
}

void Session::On(RegisterTemplate& registration) {
  const std::uint64_t id = registration.template_id;
  const auto refuse = [&](Status why) {
    SendAnswer(Answer::Subject::kTemplate, id, std::move(why));
  };
  if (id == 0 || templates_.contains(id)) {
    return refuse(
        Status(StatusCode::kAlreadyExists, reason::kIdInUse,
               "template id " + std::to_string(id) + " is in use; choose another one, from 1 on"));
  }
  if (templates_.size() >= kTemplatesPerSession) {
    return refuse(Status(StatusCode::kResourceExhausted, reason::kTooMany,
                         "the session has " + std::to_string(templates_.size()) +
                             " templates, as many as it may; forget one first"));
  }
  if (registration.operations.empty()) {
    return refuse(
        Status(StatusCode::kInvalidArgument, reason::kEmptyJob, "the template has no operation"));
  }
  Result<std::shared_ptr<Program>> program = binder_.Bind(std::move(registration.operations));
  if (!program.ok()) return refuse(program.status());
  if (program_bytes_ + (*program)->held_bytes > kProgramBytes) {
    return refuse(Status(StatusCode::kResourceExhausted, reason::kTooMany,
                         "the session's templates and jobs would take more than " +
                             FormatBytes(kProgramBytes) + "; forget some templates first"));
  }
  program_bytes_ += (*program)->held_bytes;
  templates_.emplace(id, Template{std::move(*program), {}});
  unsettled_.push_back(id);
  SettleTemplates();
}

// Templates whose modules and buffers are all there now are checked, once.
void Session::SettleTemplates() {
  std::erase_if(unsettled_, [this](std::uint64_t id) {
    const auto at = templates_.find(id);
    if (at == templates_.end()) return true;
    Template& known = at->second;
    if (!known.program->settled()) return false;
    known.error = binder_.Check(*known.program, id);
    if (!known.error.ok()) SendAnswer(Answer::Subject::kTemplate, id, known.error);
    return true;
  });
}

void Session::On(ForgetTemplate& forget) {
  const auto at = templates_.find(forget.template_id);
  if (at == templates_.end()) {
    SendAnswer(Answer::Subject::kTemplate, forget.template_id,
               Status(StatusCode::kNotFound, reason::kUnknownTemplate,
                      "no template " + std::to_string(forget.template_id) + "; " +
                          Listed(templates_, "template")));
    return;
  }
  program_bytes_ -= at->second.program->held_bytes;
  templates_.erase(at);
}

Status Session::DataFault(const Data& data, const IncomingStaging& staging) const {
  const std::uint64_t had = staging.staging->content.size();
  if (data.offset != had) {
    return Status(StatusCode::kInvalidArgument, reason::kDataOutOfOrder,
                  "staging " + std::to_string(data.staging) + " goes on at offset " +
                      std::to_string(had) + ", not " + std::to_string(data.offset));
  }
  if (data.content.size() > window_bytes_ - std::min(staged_bytes_, window_bytes_)) {
    return Status(StatusCode::kResourceExhausted, reason::kStagingExceeded,
                  "staged bytes would pass the window of " + FormatBytes(window_bytes_) +
                      "; wait for a job that holds some");
  }
  return Status::Ok();
}

void Session::On(Data& data) {
  if (!open()) return;
  auto at = stagings_.find(data.staging);
  if (at == stagings_.end()) {
    if (stagings_.size() >= kStagingsPerSession) {
      return SendAnswer(Answer::Subject::kStaging, data.staging,
                        Status(StatusCode::kResourceExhausted, reason::kTooMany,
                               "too many staging areas that no job has named"));
    }
    at = stagings_.emplace(data.staging, IncomingStaging{std::make_shared<Staging>(), {}}).first;
  }
  IncomingStaging& incoming = at->second;
  if (!incoming.error.ok()) return;
  std::string& content = incoming.staging->content;
  if (Status fault = DataFault(data, incoming); !fault.ok()) {
    staged_bytes_ -= content.size();
    content = {};
    incoming.error = fault;
    return SendAnswer(Answer::Subject::kStaging, data.staging, std::move(fault));
  }
  staged_bytes_ += data.content.size();
  if (content.empty()) {
    content = std::move(data.content);
  } else {
    content += data.content;
  }
}

void Session::On(OpenQueue& open_queue) {
  const std::uint32_t queue = open_queue.queue;
  if (queue == 0 || queue > 63) {
    SendAnswer(Answer::Subject::kQueue, queue,
               Status(StatusCode::kInvalidArgument, reason::kUnknownQueue,
                      "queues are numbered 1 to 63; queue 0 always exists"));
  } else if ((open_queues_ >> queue & 1) != 0) {
    SendAnswer(Answer::Subject::kQueue, queue,
               Status(StatusCode::kAlreadyExists, reason::kIdInUse,
                      "queue " + std::to_string(queue) + " is open already"));
  } else {
    open_queues_ |= std::uint64_t{1} << queue;
  }
}

void Session::On(ChangeShare& change) {
  Result<Share> granted = executor::Admit(change.share, desk_.limits, desk_.min_sum - share_.min);
  if (granted.ok() && phase_ < Phase::kClosing) {
    desk_.min_sum += granted->min - share_.min;
    share_ = *granted;
    desk_.Tell(core::SessionChanged{id_, share_});
  }
  SendAnswer(Answer::Subject::kShare, 0, granted.status());
}

void Session::Pause(bool paused) {
  if (paused) {
    desk_.Tell(core::Paused{id_});
  } else {
    desk_.Tell(core::Resumed{id_});
  }
}

void Session::Finish(const Status& why) {
  if (phase_ != Phase::kOpen) return;
  phase_ = Phase::kFinishing;
  why_ = why;
  CloseIfFinished();
}

void Session::CloseIfFinished() {
  if (phase_ == Phase::kFinishing && jobs_.empty()) Close(why_);
}

void Session::Close(const Status& why) {
  if (phase_ >= Phase::kClosing) return;
  phase_ = Phase::kClosing;
  why_ = why;
  desk_.min_sum -= share_.min;
  const Status cancelled =
      why.ok() ? Status(StatusCode::kCancelled, reason::kSessionClosed, "the session was closed")
               : why;
  for (auto& [queue, jobs] : std::exchange(held_, {})) {
    for (std::unique_ptr<core::Job>& job : jobs) {
      Over(std::move(job), Outcome::kCancelled, cancelled);
    }
  }
  desk_.Tell(core::SessionClosed{id_, cancelled});
}

void Session::Disconnect(const Status& why) {
  if (port_ != nullptr) port_->session = nullptr;
  port_.reset();
  messages_.clear();
  Close(why);
}

void Session::LeftCore() {
  phase_ = Phase::kGone;
  ReleaseFromDevice();
}

void Session::ReleaseFromDevice() {
  if (preparing_ == 0) desk_.CloseOnDevice(*this, id_);
}

void Session::Send(ServerMessage message) {
  if (port_ == nullptr) return;
  messages_.push_back(std::move(message));
  if (listed_unsent_) return;
  listed_unsent_ = true;
  desk_.unsent.push_back(this);
}

void Session::SendAnswer(Answer::Subject subject, std::uint64_t id, Status error) {
  Send(Answer{subject, id, std::move(error)});
}

void Session::Flush() {
  listed_unsent_ = false;
  if (port_ != nullptr && !messages_.empty()) port_->Send(messages_);
}

void Session::SendEnded() {
  if (port_ == nullptr) return;
  messages_.push_back(Ended{why_});
  port_->Send(messages_);
  port_->session = nullptr;
  port_.reset();
}

}  // namespace gpusched::executor
