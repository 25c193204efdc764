// A program's kernels: found by name, checked, and run block after block.
#include "support/fake_cudart/ptx_interpreter.h"

#include <utility>

#include "gpusched/reasons.h"
#include "support/fake_cudart/ptx_block.h"
#include "support/fake_cudart/ptx_code.h"

namespace gpusched::test {
namespace {

constexpr std::uint64_t kMostDynamicShared = 1 << 20;

}  // namespace

struct PtxProgram::Code {
  ptx::DecodedProgram program;
  std::string output;
};

PtxProgram::PtxProgram(std::unique_ptr<Code> code) : code_(std::move(code)) {}
PtxProgram::PtxProgram(PtxProgram&&) noexcept = default;
PtxProgram& PtxProgram::operator=(PtxProgram&&) noexcept = default;
PtxProgram::~PtxProgram() = default;

Result<PtxProgram> PtxProgram::Load(std::string text) {
  Result<ptx::DecodedProgram> program = ptx::Decode(std::move(text));
  if (!program.ok()) return program.status();
  return PtxProgram(std::make_unique<Code>(Code{*std::move(program), {}}));
}

std::vector<std::string> PtxProgram::kernels() const {
  std::vector<std::string> names;
  for (const ptx::CodeFunction& function : code_->program.functions) {
    if (function.is_entry && function.has_body) names.push_back(function.name);
  }
  return names;
}

std::span<std::byte> PtxProgram::Variable(std::string_view name) {
  const auto found = code_->program.variables.find(name);
  if (found == code_->program.variables.end()) return {};
  return std::span(code_->program.memory).subspan(found->second.offset, found->second.bytes);
}

std::string PtxProgram::TakeOutput() { return std::exchange(code_->output, {}); }

Status PtxProgram::Launch(const PtxLaunch& launch, const Memory& memory) {
  ptx::DecodedProgram& program = code_->program;
  const auto found = program.function_by_name.find(launch.kernel);
  if (found == program.function_by_name.end() || !program.functions[found->second].is_entry) {
    return {StatusCode::kNotFound, reason::kUnknownKernel,
            "there is no kernel '" + std::string(launch.kernel) + "'"};
  }
  constexpr std::uint64_t kMostThreads = 1'024;
  if (device::Volume(launch.grid) == 0) {
    return {StatusCode::kInvalidArgument, reason::kBadGrid, "a grid of no blocks"};
  }
  if (device::Volume(launch.block) == 0 || device::Volume(launch.block) > kMostThreads) {
    return {StatusCode::kInvalidArgument, reason::kBadBlock, "a block of 1 to 1,024 threads"};
  }
  if (launch.dynamic_shared_bytes > kMostDynamicShared) {
    return {StatusCode::kInvalidArgument, reason::kLocalMemory, "too much dynamic shared memory"};
  }
  std::uint64_t executed = 0;
  ptx::BlockRun run(program, code_->output, program.functions[found->second], launch, memory,
                    executed);
  for (std::uint32_t z = 0; z < launch.grid.z; ++z) {
    for (std::uint32_t y = 0; y < launch.grid.y; ++y) {
      for (std::uint32_t x = 0; x < launch.grid.x; ++x) {
        if (launch.before_block) launch.before_block();
        Status status = run.Run({x, y, z});
        if (launch.after_block) launch.after_block();
        if (!status.ok()) return status;
      }
    }
  }
  return Status::Ok();
}

}  // namespace gpusched::test
