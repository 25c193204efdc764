// A job under construction: each call adds one operation or change.
#include "gpusched/job.h"

#include <utility>

namespace gpusched {

Job& Job::Write(const Buffer& to, const void* from, std::uint64_t bytes, std::uint64_t offset) & {
  Operation& operation = operations_.emplace_back();
  operation.kind = Operation::Kind::kWrite;
  operation.at = to.At(offset);
  operation.bytes = bytes;
  operation.from = from;
  return *this;
}

Job& Job::Read(const Buffer& from, void* to, std::uint64_t bytes, std::uint64_t offset) & {
  Operation& operation = operations_.emplace_back();
  operation.kind = Operation::Kind::kRead;
  operation.at = from.At(offset);
  operation.bytes = bytes;
  operation.to = to;
  return *this;
}

Job& Job::Fill(const Buffer& what, std::uint8_t value, std::uint64_t bytes,
               std::uint64_t offset) & {
  Operation& operation = operations_.emplace_back();
  operation.kind = Operation::Kind::kFill;
  operation.at = what.At(offset);
  operation.bytes = bytes;
  operation.value = value;
  return *this;
}

Job& Job::LaunchWith(const Kernel& kernel, Dim3 grid, Dim3 block,
                     std::vector<Argument> arguments) & {
  LaunchWith(kernel.name_, grid, block, std::move(arguments));
  operations_.back().module = kernel.module_;
  return *this;
}

Job& Job::LaunchWith(std::string_view kernel, Dim3 grid, Dim3 block,
                     std::vector<Argument> arguments) & {
  Operation& operation = operations_.emplace_back();
  operation.kind = Operation::Kind::kLaunch;
  operation.kernel = kernel;
  operation.grid = grid;
  operation.block = block;
  operation.arguments = std::move(arguments);
  return *this;
}

Job& Job::LaunchWith(const Kernel& kernel, const NdRange& range,
                     std::vector<Argument> arguments) & {
  LaunchWith(kernel, {}, {}, std::move(arguments));
  operations_.back().range = range;
  return *this;
}

Job& Job::LaunchWith(std::string_view kernel, const NdRange& range,
                     std::vector<Argument> arguments) & {
  LaunchWith(kernel, {}, {}, std::move(arguments));
  operations_.back().range = range;
  return *this;
}

Changes& Changes::Set(std::uint32_t launch, std::uint32_t argument, Argument value) & {
  arguments_.push_back({launch, argument, std::move(value)});
  return *this;
}

Changes& Changes::Write(std::uint32_t operation, const void* from) & {
  sources_.push_back({operation, from});
  return *this;
}

Changes& Changes::Read(std::uint32_t operation, void* to) & {
  targets_.push_back({operation, to});
  return *this;
}

}  // namespace gpusched
