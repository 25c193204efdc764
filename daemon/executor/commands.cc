// Fills a device command from the operation that the core cut a piece of.
#include "executor/commands.h"

#include <utility>

#include "executor/desk.h"
#include "executor/program.h"

namespace gpusched::executor {
namespace {

device::LaunchCommand Make(const Launch& launch, const BoundOperation& bound,
                           const core::StartCommand& order) {
  device::LaunchCommand part = LaunchOf(launch, bound, order.session);
  part.first = order.first;
  part.count = order.count;
  return part;
}

device::CopyInCommand Make(const CopyIn& copy, const BoundOperation& bound, const Body& body,
                           const core::StartCommand& order) {
  const std::string& content = body.sources[order.operation]->content;
  return {.session = order.session,
          .buffer = bound.target->device_id,
          .offset = copy.offset,
          .source = reinterpret_cast<const std::byte*>(content.data()),
          .first = order.first,
          .count = order.count,
          .total = copy.bytes};
}

// The memory for what is read comes into being with the first command that fills it.
device::CopyOutCommand Make(const CopyOut& copy, const BoundOperation& bound, Body& body,
                            const core::StartCommand& order) {
  if (body.results.empty()) body.results.resize(body.program->operations.size());
  Piece& piece = body.results[order.operation];
  if (piece.bytes == nullptr) {
    piece = {std::make_unique_for_overwrite<std::byte[]>(copy.bytes), copy.bytes};
  }
  return {.session = order.session,
          .buffer = bound.target->device_id,
          .offset = copy.offset,
          .target = piece.bytes.get(),
          .first = order.first,
          .count = order.count,
          .total = copy.bytes};
}

device::FillCommand Make(const Fill& fill, const BoundOperation& bound,
                         const core::StartCommand& order) {
  return {.session = order.session,
          .buffer = bound.target->device_id,
          .offset = fill.offset,
          .value = static_cast<std::uint8_t>(fill.value),
          .first = order.first,
          .count = order.count,
          .total = fill.bytes};
}

core::CommandFinished::Outcome OutcomeOf(device::Completion::Outcome outcome) {
  using From = device::Completion::Outcome;
  using To = core::CommandFinished::Outcome;
  switch (outcome) {
    case From::kDone: return To::kDone;
    case From::kStopped: return To::kStopped;
    case From::kFailed: return To::kFailed;
    case From::kLost: return To::kLost;
  }
  return To::kFailed;
}

}  // namespace

device::LaunchCommand LaunchOf(const Launch& launch, const BoundOperation& bound,
                               SessionId session) {
  return {.session = session,
          .module = bound.target->device_id,
          .kernel = bound.kernel,
          .grid = launch.grid,
          .block = launch.block,
          .arguments = &launch.arguments,
          .dynamic_local_bytes = launch.dynamic_local_bytes,
          .first = 0,
          .count = bound.extent.extent,
          .offset = launch.range ? launch.range->offset : device::Dim3{0, 0, 0}};
}

device::Command MakeCommand(const core::StartCommand& order, Time now) {
  Body& body = static_cast<Body&>(*order.job->body);
  const BoundOperation& bound = *body.program->operations[order.operation];
  device::Command command{.what = {},
                          .submitted = now,
                          .expected = order.estimate,
                          .priority_class = order.priority_class};
  if (const auto* launch = std::get_if<Launch>(&bound.asked)) {
    command.what = Make(*launch, bound, order);
  } else if (const auto* in = std::get_if<CopyIn>(&bound.asked)) {
    command.what = Make(*in, bound, body, order);
  } else if (const auto* out = std::get_if<CopyOut>(&bound.asked)) {
    command.what = Make(*out, bound, body, order);
  } else if (const auto* fill = std::get_if<Fill>(&bound.asked)) {
    command.what = Make(*fill, bound, order);
  }
  return command;
}

core::CommandFinished MakeFinished(device::Completion&& completion) {
  return {.ticket = core::Ticket{static_cast<std::uint64_t>(completion.ticket)},
          .outcome = OutcomeOf(completion.outcome),
          .next = completion.next,
          .started = completion.started,
          .ended = completion.ended,
          .error = std::move(completion.error)};
}

}  // namespace gpusched::executor
