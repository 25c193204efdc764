// Calls, returns, and the few functions of the system that kernels call.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "support/fake_cudart/ptx_block.h"

namespace gpusched::test::ptx {
namespace {

constexpr std::size_t kDeepestCall = 1'000;
constexpr std::uint64_t kMostLocalBytes = 1 << 20;  // of one thread

}  // namespace

void BlockRun::Call(Thread& thread, const Op& op) {
  std::int64_t callee = op.callee;
  if (callee < 0) {
    callee = static_cast<std::int64_t>(Read(thread, op.operands[0]) - kFunctionWindow);
  }
  if (callee < 0 || callee >= static_cast<std::int64_t>(program_.functions.size())) {
    return Fail(op, StatusCode::kOutOfRange, reason::kOutOfBounds, "a call to no function");
  }
  const CodeFunction& function = program_.functions[static_cast<std::size_t>(callee)];
  if (!function.has_body) return CallSystem(thread, op, function.name);
  if (thread.frames.size() == kDeepestCall) {
    return Fail(op, StatusCode::kAborted, reason::kDeviceFailed, "calls deeper than the stack");
  }
  Frame& caller = thread.frames.back();
  Frame frame{.function = &function,
              .registers = caller.registers + caller.function->registers,
              .local = (thread.local.size() + 15) / 16 * 16,
              .parameters = std::vector<std::byte>(function.frame_bytes),
              .result_at = op.result.offset};
  if (frame.local + function.local_bytes > kMostLocalBytes) {
    return Fail(op, StatusCode::kAborted, reason::kDeviceFailed, "more local memory than there is");
  }
  const std::size_t arguments = std::min(function.formals.size(), op.arguments.size());
  for (std::size_t i = 0; i < arguments; ++i) {
    const Actual &from = op.arguments[i], &to = function.formals[i];
    std::memcpy(frame.parameters.data() + to.offset, caller.parameters.data() + from.offset,
                std::min(from.bytes, to.bytes));
  }
  thread.registers.resize(std::max(thread.registers.size(), frame.registers + function.registers));
  thread.local.resize(frame.local + function.local_bytes);
  thread.frames.push_back(std::move(frame));
}

void BlockRun::Return(Thread& thread) {
  Frame done = std::move(thread.frames.back());
  thread.frames.pop_back();
  if (thread.frames.empty()) {
    thread.state = Thread::State::kDone;
    return;
  }
  thread.local.resize(done.local);
  const Actual& result = done.function->result;
  std::vector<std::byte>& parameters = thread.frames.back().parameters;
  if (result.bytes == 0 || done.result_at + result.bytes > parameters.size()) return;
  std::memcpy(parameters.data() + done.result_at, done.parameters.data() + result.offset,
              result.bytes);
}

void BlockRun::CallSystem(Thread& thread, const Op& op, const std::string& name) {
  if (name == "vprintf") return Print(thread, op);
  if (name == "__assertfail") {
    return Fail(op, StatusCode::kAborted, reason::kDeviceFailed, "an assertion failed");
  }
  Fail(op, StatusCode::kUnimplemented, reason::kBadModule, "no body of '" + name + "'");
}

// The format and where its arguments lie; only whole numbers and text are told, which is what tests
// print.
void BlockRun::Print(Thread& thread, const Op& op) {
  const auto& parameters = thread.frames.back().parameters;
  if (op.arguments.size() < 2) return Unknown(op);
  std::uint64_t format = FromBytes(parameters.data() + op.arguments[0].offset, 8);
  std::uint64_t arguments = FromBytes(parameters.data() + op.arguments[1].offset, 8);
  for (;; ++format) {
    const std::byte* at = Generic(thread, format, 1);
    if (at == nullptr || *at == std::byte{0}) break;
    const char c = static_cast<char>(*at);
    if (c != '%') {
      output_ += c;
      continue;
    }
    const std::byte* kind = Generic(thread, ++format, 1);
    const std::byte* value = Generic(thread, arguments, 4);
    if (kind == nullptr || value == nullptr || *kind == std::byte{0}) break;
    const std::uint64_t bits = FromBytes(value, 4);
    output_ += static_cast<char>(*kind) == 'd' ? std::to_string(static_cast<std::int32_t>(bits))
                                               : std::to_string(bits);
    arguments += 4;
  }
}

}  // namespace gpusched::test::ptx
