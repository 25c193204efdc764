// Field by field, both ways; what a value may be is checked where it is used.
#include "rpc/wire.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "executor/limits.h"
#include "gpusched/reasons.h"
#include "rpc/version.h"

namespace gpusched::rpc {
namespace {

// Out of any range: admission says so.
constexpr Rate kNotAFraction = -1;

Rate RateOf(double fraction) {
  if (!(fraction >= 0.0 && fraction <= 2.0)) return kNotAFraction;
  return std::llround(fraction * static_cast<double>(kWholeDevice));
}

Share ShareOf(const v1::Share& from) {
  Share share;
  if (from.weight() != 0) share.weight = from.weight();
  share.min = RateOf(from.min());
  if (from.max() != 0.0) share.max = RateOf(from.max());
  share.strict = from.strict();
  share.priority = from.priority();
  share.latency_target = Duration(from.latency_target_ns());
  return share;
}

device::Dim3 DimOf(const v1::Dim3& from) { return {from.x(), from.y(), from.z()}; }

device::Argument ArgumentOf(v1::Argument& from) {
  switch (from.what_case()) {
    case v1::Argument::kBuffer:
      return device::BufferArgument{from.buffer().buffer(), from.buffer().offset()};
    case v1::Argument::kLocalBytes: return device::LocalArgument{from.local_bytes()};
    case v1::Argument::kValue:
    case v1::Argument::WHAT_NOT_SET: break;
  }
  return device::ValueArgument(std::move(*from.mutable_value()));
}

executor::NdRange RangeOf(const v1::NdRange& from) {
  return {.threads = DimOf(from.threads()),
          .block = DimOf(from.block()),
          .offset = DimOf(from.offset())};
}

executor::Launch LaunchOf(v1::Launch& from) {
  executor::Launch launch;
  launch.module = from.module();
  launch.kernel = std::move(*from.mutable_kernel());
  launch.grid = DimOf(from.grid());
  launch.block = from.has_block() ? DimOf(from.block()) : device::Dim3{};
  if (from.has_range()) launch.range = RangeOf(from.range());
  launch.arguments.reserve(static_cast<std::size_t>(from.arguments_size()));
  for (v1::Argument& argument : *from.mutable_arguments()) {
    launch.arguments.push_back(ArgumentOf(argument));
  }
  launch.dynamic_local_bytes = from.dynamic_local_bytes();
  return launch;
}

Status OperationsOf(google::protobuf::RepeatedPtrField<v1::Operation>& from,
                    std::vector<executor::Operation>& to) {
  to.reserve(static_cast<std::size_t>(from.size()));
  for (v1::Operation& operation : from) {
    switch (operation.what_case()) {
      case v1::Operation::kLaunch:
        if (operation.launch().has_range() &&
            (operation.launch().has_grid() || operation.launch().has_block())) {
          return Status(StatusCode::kInvalidArgument, reason::kMalformedFrame,
                        "a launch has a range of threads, and a grid or block besides: give one");
        }
        to.emplace_back(LaunchOf(*operation.mutable_launch()));
        break;
      case v1::Operation::kCopyIn: {
        const v1::CopyIn& copy = operation.copy_in();
        to.emplace_back(
            executor::CopyIn{copy.buffer(), copy.offset(), copy.bytes(), copy.staging()});
        break;
      }
      case v1::Operation::kCopyOut: {
        const v1::CopyOut& copy = operation.copy_out();
        to.emplace_back(executor::CopyOut{copy.buffer(), copy.offset(), copy.bytes()});
        break;
      }
      case v1::Operation::kFill: {
        const v1::Fill& fill = operation.fill();
        to.emplace_back(executor::Fill{fill.buffer(), fill.offset(), fill.bytes(), fill.value()});
        break;
      }
      case v1::Operation::WHAT_NOT_SET:
        return Status(StatusCode::kInvalidArgument, reason::kMalformedFrame,
                      "an operation is empty or of a later version of the protocol");
    }
  }
  return Status::Ok();
}

Status Decode(v1::Submit& from, executor::ClientMessage& to) {
  auto& submit = to.emplace<executor::Submit>();
  submit.job = from.job();
  submit.queue = from.queue();
  submit.template_id = from.template_id();
  submit.in_client = Duration(from.client_ns());
  submit.deadline = Duration(from.deadline_ns());
  submit.skip_if_late = from.skip_if_late();
  if (!from.tag().empty()) submit.tag = from.tag().substr(0, executor::kNameBytes);
  for (v1::ArgumentChange& change : *from.mutable_changes()) {
    submit.changes.push_back({change.operation(), change.argument(),
                              change.has_value() ? ArgumentOf(*change.mutable_value())
                                                 : device::Argument(device::ValueArgument()),
                              change.staging()});
  }
  if (from.operations_size() == 0) return Status::Ok();
  return OperationsOf(*from.mutable_operations(), submit.operations);
}

Status Decode(v1::Hello& from, executor::ClientMessage& to) {
  auto& hello = to.emplace<executor::Hello>();
  hello.name = std::move(*from.mutable_name());
  hello.device = std::move(*from.mutable_device());
  hello.client = std::move(*from.mutable_client());
  hello.share = ShareOf(from.share());
  hello.memory_bytes = from.memory_bytes();
  return Status::Ok();
}

// A format that this daemon does not know is left out: the device picks among the rest.
Status Decode(v1::LoadModule& from, executor::ClientMessage& to) {
  auto& load = to.emplace<executor::LoadModule>();
  load.module = from.module();
  for (v1::Image& image : *from.mutable_images()) {
    device::Image::Format format{};
    switch (image.format()) {
      case v1::IMAGE_FORMAT_VIRTUAL: format = device::Image::Format::kVirtual; break;
      case v1::IMAGE_FORMAT_OPENCL_C: format = device::Image::Format::kOpenClC; break;
      case v1::IMAGE_FORMAT_CUDA_C: format = device::Image::Format::kCudaC; break;
      case v1::IMAGE_FORMAT_PTX: format = device::Image::Format::kPtx; break;
      case v1::IMAGE_FORMAT_CUBIN: format = device::Image::Format::kCubin; break;
      case v1::IMAGE_FORMAT_FATBIN: format = device::Image::Format::kFatbin; break;
      default: continue;
    }
    load.images.push_back({format, std::move(*image.mutable_content())});
  }
  return Status::Ok();
}

Status Decode(v1::Data& from, executor::ClientMessage& to) {
  if (from.content().size() > kPieceBytes) {
    return Status(StatusCode::kInvalidArgument, reason::kFrameTooLarge,
                  "a piece of data has at most 1 MiB, this one has " +
                      std::to_string(from.content().size()) + " bytes; split it");
  }
  to = executor::Data{from.staging(), from.offset(), std::move(*from.mutable_content())};
  return Status::Ok();
}

Status Decode(v1::RegisterTemplate& from, executor::ClientMessage& to) {
  auto& registration = to.emplace<executor::RegisterTemplate>();
  registration.template_id = from.template_id();
  return OperationsOf(*from.mutable_operations(), registration.operations);
}

v1::JobOutcome OutcomeOf(executor::Outcome outcome) {
  switch (outcome) {
    case executor::Outcome::kDone: return v1::JOB_OUTCOME_DONE;
    case executor::Outcome::kCancelled: return v1::JOB_OUTCOME_CANCELLED;
    case executor::Outcome::kSkipped: return v1::JOB_OUTCOME_SKIPPED;
    case executor::Outcome::kFailed: return v1::JOB_OUTCOME_FAILED;
    case executor::Outcome::kRefused: return v1::JOB_OUTCOME_REFUSED;
  }
  return v1::JOB_OUTCOME_UNSPECIFIED;
}

v1::Answer::Subject SubjectOf(executor::Answer::Subject subject) {
  using Subject = executor::Answer::Subject;
  switch (subject) {
    case Subject::kBuffer: return v1::Answer::BUFFER;
    case Subject::kModule: return v1::Answer::MODULE;
    case Subject::kTemplate: return v1::Answer::TEMPLATE;
    case Subject::kQueue: return v1::Answer::QUEUE;
    case Subject::kShare: return v1::Answer::SHARE;
    case Subject::kStaging: return v1::Answer::STAGING;
  }
  return v1::Answer::UNSPECIFIED;
}

v1::Parameter::Kind KindOf(device::Parameter::Kind kind) {
  switch (kind) {
    case device::Parameter::Kind::kBuffer: return v1::Parameter::BUFFER;
    case device::Parameter::Kind::kValue: return v1::Parameter::VALUE;
    case device::Parameter::Kind::kLocal: return v1::Parameter::LOCAL;
  }
  return v1::Parameter::VALUE;
}

// A build log must fit a frame; its beginning says what is wrong.
constexpr std::size_t kLogBytes = 256 << 10;

}  // namespace

Status Decode(v1::ClientMessage& from, executor::ClientMessage& to) {
  switch (from.what_case()) {
    case v1::ClientMessage::kHello: return Decode(*from.mutable_hello(), to);
    case v1::ClientMessage::kSubmit: return Decode(*from.mutable_submit(), to);
    case v1::ClientMessage::kData: return Decode(*from.mutable_data(), to);
    case v1::ClientMessage::kLoadModule: return Decode(*from.mutable_load_module(), to);
    case v1::ClientMessage::kUnloadModule:
      to = executor::UnloadModule{from.unload_module().module()};
      break;
    case v1::ClientMessage::kAllocate:
      to = executor::Allocate{from.allocate().buffer(), from.allocate().bytes()};
      break;
    case v1::ClientMessage::kFree: to = executor::Free{from.free().buffer()}; break;
    case v1::ClientMessage::kRegisterTemplate: return Decode(*from.mutable_register_template(), to);
    case v1::ClientMessage::kForgetTemplate:
      to = executor::ForgetTemplate{from.forget_template().template_id()};
      break;
    case v1::ClientMessage::kOpenQueue: to = executor::OpenQueue{from.open_queue().queue()}; break;
    case v1::ClientMessage::kCloseQueue:
      to = executor::CloseQueue{from.close_queue().queue()};
      break;
    case v1::ClientMessage::kCancel: to = executor::Cancel{from.cancel().job()}; break;
    case v1::ClientMessage::kChangeShare:
      to = executor::ChangeShare{ShareOf(from.change_share().share())};
      break;
    case v1::ClientMessage::kGoodbye: to = executor::Goodbye{}; break;
    case v1::ClientMessage::WHAT_NOT_SET:
      return Status(StatusCode::kInvalidArgument, reason::kMalformedFrame,
                    "a message is empty or of a later version of the protocol");
  }
  return Status::Ok();
}

void EncodeError(const Status& from, v1::Error& to) {
  to.set_code(static_cast<std::int32_t>(from.code()));
  to.set_reason(from.reason());
  to.set_message(from.message());
}

void EncodeShare(const Share& from, v1::Share& to) {
  to.set_weight(from.weight);
  to.set_min(static_cast<double>(from.min) / static_cast<double>(kWholeDevice));
  to.set_max(static_cast<double>(from.max) / static_cast<double>(kWholeDevice));
  to.set_strict(from.strict);
  to.set_priority(from.priority);
  to.set_latency_target_ns(from.latency_target.count());
}

void EncodeDevice(const device::DeviceInfo& from, std::uint32_t index, Duration preemption_bound,
                  v1::Device& to) {
  to.set_uuid(from.uuid);
  to.set_name(from.name);
  to.set_backend(from.backend);
  to.set_memory_bytes(from.memory_bytes);
  to.set_compute_units(from.compute_units);
  to.set_order_kept(from.priority_classes == 1);
  to.set_can_cut(from.can_cut);
  to.set_preemption_bound_ns(preemption_bound.count());
  to.set_shortest_useful_chunk_ns(from.shortest_useful_chunk.count());
  to.set_index(static_cast<std::int32_t>(index));
}

void EncodeKernel(const device::KernelInfo& from, v1::Kernel& to) {
  to.set_name(from.name);
  for (const device::Parameter& parameter : from.parameters) {
    v1::Parameter& row = *to.add_parameters();
    row.set_kind(KindOf(parameter.kind));
    row.set_size(parameter.size);
    row.set_name(parameter.name);
  }
  to.set_cuttable(from.cuttable);
  to.set_whole_reason(from.whole_reason);
}

void Encode(const executor::JobReport& from, v1::ServerMessage& to) {
  v1::JobReport& report = *to.mutable_job();
  report.set_job(from.job);
  report.set_outcome(OutcomeOf(from.outcome));
  if (!from.error.ok()) EncodeError(from.error, *report.mutable_error());
  report.set_client_ns(from.in_client.count());
  report.set_queued_ns(from.queued.count());
  report.set_run_ns(from.run.count());
  report.set_charged_ns(from.charged.count());
  report.set_late(from.late);
  report.set_generation(from.generation);
  report.set_started_ns(from.started.time_since_epoch().count());
  report.set_ended_ns(from.ended.time_since_epoch().count());
}

void Encode(const executor::Welcome& from, v1::ServerMessage& to) {
  v1::Welcome& welcome = *to.mutable_welcome();
  welcome.set_version(kProtocolVersion);
  welcome.set_session(from.session.serial);
  EncodeDevice(*from.device, from.device_index, from.preemption_bound, *welcome.mutable_device());
  welcome.set_window_jobs(from.window_jobs);
  welcome.set_window_bytes(from.window_bytes);
  EncodeShare(from.share, *welcome.mutable_share());
  welcome.set_memory_bytes(from.memory_bytes);
  welcome.set_daemon(std::string(kVersion));
}

void Encode(const executor::ModuleLoaded& from, v1::ServerMessage& to) {
  v1::ModuleLoaded& loaded = *to.mutable_module_loaded();
  loaded.set_module(from.module);
  if (!from.error.ok()) {
    EncodeError(from.error, *loaded.mutable_error());
    loaded.mutable_error()->mutable_message()->resize(
        std::min(from.error.message().size(), kLogBytes));
    return;
  }
  for (const device::KernelInfo& kernel : from.info.kernels) {
    EncodeKernel(kernel, *loaded.add_kernels());
  }
  loaded.set_build_log(from.info.build_log.substr(0, kLogBytes));
}

void Encode(const executor::Answer& from, v1::ServerMessage& to) {
  v1::Answer& answer = *to.mutable_answer();
  answer.set_subject(SubjectOf(from.subject));
  answer.set_id(from.id);
  if (!from.error.ok()) EncodeError(from.error, *answer.mutable_error());
}

void Encode(const executor::Ended& from, v1::ServerMessage& to) {
  v1::SessionEnded& ended = *to.mutable_ended();
  if (!from.why.ok()) EncodeError(from.why, *ended.mutable_error());
}

}  // namespace gpusched::rpc
