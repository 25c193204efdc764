// Between the public values and the wire: jobs, shares and images out, errors and facts in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/job.h"
#include "gpusched/module.h"
#include "gpusched/session.h"
#include "gpusched/status.h"
#include "gpusched/v1/error.pb.h"
#include "gpusched/v1/resources.pb.h"
#include "gpusched/v1/session.pb.h"

namespace gpusched::internal {

// Bytes that must reach the daemon before the job that names their staging.
struct Source {
  std::uint64_t staging = 0;  // 0 in a template: each submission takes one of its own
  const void* from = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t operation = 0;  // the Write that takes them
};

// Where results go, in the order in which they come.
struct Target {
  std::byte* to = nullptr;  // none: dropped
  std::uint64_t bytes = 0;
};

class Encoding {
 public:
  // What the library remembers of a template's operation, to apply changes to it.
  struct Shape {
    Job::Operation::Kind kind = Job::Operation::Kind::kLaunch;
    std::uint64_t bytes = 0;  // of a copy
    std::size_t place = 0;    // of a write or read: index among the sources or targets
  };

  // What a job's operations come down to, beside their messages.
  struct Encoded {
    std::vector<Source> sources;
    std::vector<Target> targets;
    std::uint64_t staged_bytes = 0;
    std::vector<Shape> shapes;                                 // only for templates
    std::vector<std::shared_ptr<const ModuleRecord>> modules;  // likewise: kept loaded with it
  };

  // The stream owns what the job may name: its buffers, modules and staging ids.
  static Status Encode(Stream& stream, const Job& job, bool as_template,
                       google::protobuf::RepeatedPtrField<v1::Operation>* operations,
                       Encoded* encoded);
  // `encoded` holds the template's own sources and targets; what changes replaces them.
  static Status Encode(Stream& stream, const Changes& changes, const std::vector<Shape>& shapes,
                       v1::Submit* submit, Encoded* encoded);
  // Every Write of a template's submission, changed or not, brings its bytes in a staging of its
  // own.
  static void TakeStagings(Stream& stream, v1::Submit* submit, Encoded* encoded);

 private:
  static Status EncodeOperation(Stream& stream, const Job::Operation& operation, v1::Operation* to,
                                Encoded* encoded);
  static Status EncodeLaunch(Stream& stream, const Job::Operation& operation, v1::Launch* launch);
  static Status EncodeArgument(const Stream& stream, const Argument& argument, v1::Argument* to);
  static Status CheckRange(const Stream& stream, const Job::Operation& operation);
};

// BAD_PARAMETER where it is not UTF-8, which would cost the whole session: `field` is what the
// caller set.
Status CheckText(const char* field, std::string_view text);
Status CheckShare(const DeclaredShare& share);
void EncodeShare(const DeclaredShare& share, v1::Share* to);
DeclaredShare DecodeShare(const v1::Share& share);
Status EncodeImages(const ModuleImages& images, v1::LoadModule* to);
Status DecodeError(const v1::Error& error);
DeviceInfo DecodeDevice(const v1::Device& device);
std::vector<KernelInfo> DecodeKernels(
    const google::protobuf::RepeatedPtrField<v1::Kernel>& kernels);

}  // namespace gpusched::internal
