// Between the public values and the wire.
#include "encoding.h"

#include <cmath>
#include <utility>

#include "gpusched/reasons.h"
#include "gpusched/utf8.h"
#include "stream.h"

namespace gpusched::internal {
namespace {

template <typename Dim>
void EncodeDim3(Dim dim, v1::Dim3* to) {
  to->set_x(dim.x);
  to->set_y(dim.y);
  to->set_z(dim.z);
}

Status NoSuchOperation(std::uint32_t index, const char* what) {
  return Status(StatusCode::kInvalidArgument, reason::kOutOfBounds,
                "operation " + std::to_string(index) + " of the template is no " + what);
}

Status CheckBuffer(const Stream& stream, const BufferAt& at) {
  if (at.buffer == 0) {
    return Status(StatusCode::kFailedPrecondition, reason::kMovedFrom,
                  "the job names a buffer whose handle was moved from or freed");
  }
  if (at.stream != &stream) {
    return Status(StatusCode::kInvalidArgument, reason::kUnknownBuffer,
                  "the job names a buffer of another session: allocate one in this session");
  }
  return Status::Ok();
}

}  // namespace

Status Encoding::CheckRange(const Stream& stream, const Job::Operation& operation) {
  if (Status status = CheckBuffer(stream, operation.at); !status.ok()) return status;
  const bool from_nowhere =
      operation.kind == Job::Operation::Kind::kWrite && operation.from == nullptr;
  const bool to_nowhere = operation.kind == Job::Operation::Kind::kRead && operation.to == nullptr;
  if (operation.bytes != 0 && !from_nowhere && !to_nowhere) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, reason::kOutOfBounds,
                "a Write, Read or Fill of the job names no bytes: leave it out");
}

Status Encoding::EncodeArgument(const Stream& stream, const Argument& argument, v1::Argument* to) {
  switch (argument.kind()) {
    case Argument::Kind::kBuffer: {
      if (Status status = CheckBuffer(stream, argument.buffer()); !status.ok()) return status;
      v1::Argument::BufferRange* range = to->mutable_buffer();
      range->set_buffer(argument.buffer().buffer);
      range->set_offset(argument.buffer().offset);
      break;
    }
    case Argument::Kind::kValue: to->set_value(argument.value()); break;
    case Argument::Kind::kLocal: to->set_local_bytes(argument.local_bytes()); break;
  }
  return Status::Ok();
}

Status Encoding::EncodeLaunch(Stream& stream, const Job::Operation& operation, v1::Launch* launch) {
  if (operation.module) {
    if (Status status = operation.module->Check(stream, operation.kernel); !status.ok()) {
      return status;
    }
    launch->set_module(operation.module->id);
  } else {
    const Result<std::uint64_t> module = stream.FindKernel(operation.kernel);
    if (!module) return module.status();
    launch->set_module(*module);
  }
  launch->set_kernel(operation.kernel);
  if (operation.range) {
    EncodeDim3(operation.range->threads, launch->mutable_range()->mutable_threads());
    EncodeDim3(operation.range->block, launch->mutable_range()->mutable_block());
    EncodeDim3(operation.range->offset, launch->mutable_range()->mutable_offset());
  } else {
    EncodeDim3(operation.grid, launch->mutable_grid());
    EncodeDim3(operation.block, launch->mutable_block());
  }
  for (const Argument& argument : operation.arguments) {
    Status status = EncodeArgument(stream, argument, launch->add_arguments());
    if (!status.ok()) return status;
  }
  return Status::Ok();
}

Status Encoding::EncodeOperation(Stream& stream, const Job::Operation& operation, v1::Operation* to,
                                 Encoded* encoded) {
  const auto range = [&operation](auto* copy) {
    copy->set_buffer(operation.at.buffer);
    copy->set_offset(operation.at.offset);
    copy->set_bytes(operation.bytes);
  };
  switch (operation.kind) {
    case Job::Operation::Kind::kLaunch:
      return EncodeLaunch(stream, operation, to->mutable_launch());
    case Job::Operation::Kind::kWrite:
      range(to->mutable_copy_in());
      encoded->sources.push_back({.from = operation.from, .bytes = operation.bytes});
      encoded->staged_bytes += operation.bytes;
      break;
    case Job::Operation::Kind::kRead:
      range(to->mutable_copy_out());
      encoded->targets.push_back({static_cast<std::byte*>(operation.to), operation.bytes});
      break;
    case Job::Operation::Kind::kFill:
      range(to->mutable_fill());
      to->mutable_fill()->set_value(operation.value);
      break;
  }
  return CheckRange(stream, operation);
}

Status Encoding::Encode(Stream& stream, const Job& job, bool as_template,
                        google::protobuf::RepeatedPtrField<v1::Operation>* operations,
                        Encoded* encoded) {
  if (job.operations_.empty()) {
    return Status(StatusCode::kInvalidArgument, reason::kEmptyJob,
                  "the job has no operation: add a Write, Launch, Read or Fill");
  }
  operations->Reserve(static_cast<int>(job.operations_.size()));
  for (const Job::Operation& operation : job.operations_) {
    const bool write = operation.kind == Job::Operation::Kind::kWrite;
    const std::size_t place = write ? encoded->sources.size() : encoded->targets.size();
    const auto index = static_cast<std::uint32_t>(operations->size());
    Status status = EncodeOperation(stream, operation, operations->Add(), encoded);
    if (!status.ok()) return status;
    if (write) encoded->sources.back().operation = index;
    if (!as_template) continue;
    encoded->shapes.push_back({operation.kind, operation.bytes, place});
    if (operation.module) encoded->modules.push_back(operation.module);
  }
  if (as_template) return Status::Ok();
  for (Source& source : encoded->sources) {
    source.staging = stream.NextStaging();
    const int index = static_cast<int>(source.operation);
    operations->Mutable(index)->mutable_copy_in()->set_staging(source.staging);
  }
  return Status::Ok();
}

Status Encoding::Encode(Stream& stream, const Changes& changes, const std::vector<Shape>& shapes,
                        v1::Submit* submit, Encoded* encoded) {
  using Kind = Job::Operation::Kind;
  const auto is = [&shapes](std::uint32_t index, Kind kind) {
    return index < shapes.size() && shapes[index].kind == kind;
  };
  for (const Changes::ArgumentChange& change : changes.arguments_) {
    if (!is(change.launch, Kind::kLaunch)) return NoSuchOperation(change.launch, "launch");
    v1::ArgumentChange* to = submit->add_changes();
    to->set_operation(change.launch);
    to->set_argument(change.argument);
    Status status = EncodeArgument(stream, change.value, to->mutable_value());
    if (!status.ok()) return status;
  }
  for (const Changes::Source& source : changes.sources_) {
    if (source.from == nullptr || !is(source.operation, Kind::kWrite)) {
      return NoSuchOperation(source.operation, "Write, or its new bytes are nowhere");
    }
    encoded->sources[shapes[source.operation].place].from = source.from;
  }
  for (const Changes::Target& target : changes.targets_) {
    if (target.to == nullptr || !is(target.operation, Kind::kRead)) {
      return NoSuchOperation(target.operation, "Read, or its new place is nowhere");
    }
    encoded->targets[shapes[target.operation].place].to = static_cast<std::byte*>(target.to);
  }
  return Status::Ok();
}

void Encoding::TakeStagings(Stream& stream, v1::Submit* submit, Encoded* encoded) {
  for (Source& source : encoded->sources) {
    source.staging = stream.NextStaging();
    v1::ArgumentChange* to = submit->add_changes();
    to->set_operation(source.operation);
    to->set_staging(source.staging);
  }
}

Status CheckText(const char* field, std::string_view text) {
  const std::optional<std::size_t> wrong = FirstNotUtf8(text);
  if (!wrong) return Status::Ok();
  return Status(StatusCode::kInvalidArgument, reason::kBadParameter,
                std::string(field) + " is not UTF-8 from its byte " + std::to_string(*wrong) +
                    " on (counting from 0): encode it");
}

Status CheckShare(const DeclaredShare& share) {
  const auto bad = [](std::string message) {
    return Status(StatusCode::kInvalidArgument, reason::kBadShare, std::move(message));
  };
  // Only what the wire cannot carry, because zero means the default there: the rest is the
  // daemon's.
  if (share.weight == 0) return bad("share.weight is 0: it lies between 1 and 10000");
  if (!(share.max > 0)) return bad("share.max is not above 0: it lies between min and 1");
  if (std::isnan(share.min)) return bad("share.min is not a number: it lies between 0 and 1");
  return Status::Ok();
}

void EncodeShare(const DeclaredShare& share, v1::Share* to) {
  to->set_weight(share.weight);
  to->set_min(share.min);
  to->set_max(share.max);
  to->set_strict(share.strict);
  to->set_priority(share.priority);
  to->set_latency_target_ns(share.latency_target.count());
}

DeclaredShare DecodeShare(const v1::Share& share) {
  return {.weight = share.weight() == 0 ? 100 : share.weight(),
          .min = share.min(),
          .max = share.max() == 0 ? 1 : share.max(),
          .strict = share.strict(),
          .priority = share.priority(),
          .latency_target = Duration(share.latency_target_ns())};
}

Status EncodeImages(const ModuleImages& images, v1::LoadModule* to) {
  const auto add = [to](v1::ImageFormat format, std::string_view content) {
    if (content.empty()) return;
    v1::Image* image = to->add_images();
    image->set_format(format);
    image->set_content(content.data(), content.size());
  };
  add(v1::IMAGE_FORMAT_VIRTUAL, images.virtual_text);
  add(v1::IMAGE_FORMAT_OPENCL_C, images.source);
  add(v1::IMAGE_FORMAT_CUDA_C, images.cuda_source);
  add(v1::IMAGE_FORMAT_PTX, images.ptx);
  add(v1::IMAGE_FORMAT_CUBIN, images.cubin);
  add(v1::IMAGE_FORMAT_FATBIN, images.fatbin);
  if (to->images_size() == 0) {
    return Status(StatusCode::kInvalidArgument, reason::kBadModule,
                  "the module has no image: give at least one of source, cuda_source, ptx, cubin, "
                  "fatbin, virtual_text");
  }
  return Status::Ok();
}

Status DecodeError(const v1::Error& error) {
  if (error.code() == 0) return Status::Ok();
  // A daemon of another version may know more codes than this library.
  const bool known = error.code() > 0 && error.code() <= static_cast<int>(StatusCode::kUnavailable);
  std::string message = error.message();
  for (const v1::FieldError& field : error.fields()) {
    message += "\n  " + field.field() + ": " + field.message();
  }
  return Status(known ? static_cast<StatusCode>(error.code()) : StatusCode::kUnknown,
                error.reason(), std::move(message));
}

DeviceInfo DecodeDevice(const v1::Device& device) {
  return {.uuid = device.uuid(),
          .name = device.name(),
          .backend = device.backend(),
          .index = device.index(),
          .memory_bytes = device.memory_bytes(),
          .compute_units = device.compute_units(),
          .order_kept = device.order_kept(),
          .can_cut = device.can_cut(),
          .preemption_bound = Duration(device.preemption_bound_ns())};
}

std::vector<KernelInfo> DecodeKernels(
    const google::protobuf::RepeatedPtrField<v1::Kernel>& kernels) {
  std::vector<KernelInfo> decoded;
  for (const v1::Kernel& kernel : kernels) {
    KernelInfo& info = decoded.emplace_back();
    info.name = kernel.name();
    info.cuttable = kernel.cuttable();
    info.whole_reason = kernel.whole_reason();
    for (const v1::Parameter& parameter : kernel.parameters()) {
      using Kind = KernelInfo::Parameter::Kind;
      KernelInfo::Parameter& to = info.parameters.emplace_back();
      to.size = parameter.size();
      to.name = parameter.name();
      to.kind = parameter.kind() == v1::Parameter::BUFFER  ? Kind::kBuffer
                : parameter.kind() == v1::Parameter::LOCAL ? Kind::kLocal
                                                           : Kind::kValue;
    }
  }
  return decoded;
}

}  // namespace gpusched::internal
