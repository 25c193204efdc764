// The virtual device's threads: a timeline says when a command ends, a timer reports it then.
#include "device/virtual/virtual_device.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "device/device_clock.h"
#include "device/refusals.h"

namespace gpusched::device {
namespace {

// A timer wakes its thread 15-30 us late at the median on the two-core machine this was measured
// on. Setting it this much early and looking at the clock for the rest brings the median to 1 us
// for 2 us of processor time more per wake-up; 60 us early cost 30 us more and gained nothing.
constexpr Duration kWakeEarly = std::chrono::microseconds(30);

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // Clang needs to be told until version 17

}  // namespace

DeviceInfo VirtualDeviceInfo(int index, std::uint64_t memory_bytes) {
  DeviceInfo info;
  info.uuid = "virtual-" + std::to_string(index);
  info.name = "virtual device " + std::to_string(index);
  info.backend = "virtual";
  info.memory_bytes = memory_bytes != 0 ? memory_bytes : kVirtualMemory;
  info.can_cut = true;
  return info;
}

WakeTimer::WakeTimer() : descriptor_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot create a timer descriptor");
  }
}

WakeTimer::~WakeTimer() { close(descriptor_); }

void WakeTimer::Set(Time time) {
  // Zero would disarm it; any time that has passed wakes at once.
  const std::int64_t ns = std::max<std::int64_t>(time.time_since_epoch().count(), 1);
  itimerspec setting{};
  setting.it_value.tv_sec = ns / 1'000'000'000;
  setting.it_value.tv_nsec = ns % 1'000'000'000;
  timerfd_settime(descriptor_, TFD_TIMER_ABSTIME, &setting, nullptr);
}

void WakeTimer::Wait() {
  std::uint64_t expirations = 0;
  while (read(descriptor_, &expirations, sizeof expirations) < 0 && errno == EINTR) {}
}

VirtualDevice::VirtualDevice(DeviceInfo info, const Costs& costs, std::uint64_t stream,
                             CompletionSink& sink)
    : info_(std::move(info)),
      sink_(sink),
      sessions_(info_.memory_bytes),
      timeline_(CostModel(costs, stream)),
      line_(/*has_slow=*/false),
      timer_thread_([this] { RunTimer(); }) {}

VirtualDevice::~VirtualDevice() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  timer_.Set(Time{});
  timer_thread_.join();
}

Status VirtualDevice::OpenSession(SessionId session, Quota quota) {
  return sessions_.Open(session, quota);
}

void VirtualDevice::CloseSession(SessionId session, Ticket ticket) {
  line_.Append(session, Pace::kQuick, [this, session, ticket] {
    sink_.Post(Prepared{.ticket = ticket, .status = sessions_.Close(session), .module = {}});
  });
}

void VirtualDevice::Prepare(Ticket ticket, Preparation preparation) {
  const SessionId session = SessionOf(preparation);
  line_.Append(session, Pace::kQuick, [this, ticket, preparation = std::move(preparation)] {
    sink_.Post(Carry(ticket, preparation));
  });
}

void VirtualDevice::Start(Ticket ticket, const Command& command) {
  Pending pending;
  pending.ticket = ticket;
  {
    std::lock_guard lock(mutex_);
    const Asked asked = Resolve(command, pending);
    pending.span = timeline_.Append(command.submitted, asked);
    const bool nothing_before = pending_.empty() && !reporting_;
    if (!nothing_before || pending.span.ended > command.submitted) {
      pending_.push_back(std::move(pending));
      if (nothing_before) timer_.Set(pending_.front().span.ended - kWakeEarly);
      return;
    }
  }
  Finish(pending);
}

Asked VirtualDevice::Resolve(const Command& command, Pending& pending) {
  const auto copy = [&](const auto& what) {
    pending.target = Range(what.session, what.buffer, what.offset, what.first, what.count,
                           what.total, pending.error);
    pending.bytes = pending.error.ok() ? what.count : 0;
    return Asked{.session = what.session, .work = timeline_.model().CopyWork(pending.bytes)};
  };
  return std::visit(Overloaded{
                        [&](const LaunchCommand& launch) { return ResolveLaunch(launch, pending); },
                        [&](const CopyInCommand& in) {
                          const Asked asked = copy(in);
                          if (pending.bytes > 0) pending.source = in.source + in.first;
                          return asked;
                        },
                        [&](const CopyOutCommand& out) {
                          const Asked asked = copy(out);
                          pending.source = pending.target;
                          if (pending.bytes > 0) pending.target = out.target + out.first;
                          return asked;
                        },
                        [&](const FillCommand& fill) {
                          pending.value = fill.value;
                          return copy(fill);
                        },
                    },
                    command.what);
}

Asked VirtualDevice::ResolveLaunch(const LaunchCommand& launch, Pending& pending) {
  Asked asked{.session = launch.session};
  const Result<VirtualModule*> module = sessions_.FindModule(launch.session, launch.module);
  if (!module) {
    pending.error = module.status();
    return asked;
  }
  const auto& kernels = (*module)->kernels;
  if (launch.kernel >= kernels.size()) {
    pending.error = NoSuchKernel(launch.kernel, kernels.size());
    return asked;
  }
  const VirtualKernel& kernel = kernels[launch.kernel];
  static const std::vector<Argument> kNone;
  asked.work =
      LaunchWork(kernel, launch.arguments != nullptr ? *launch.arguments : kNone, launch.count);
  asked.cut = launch.count < Volume(launch.grid);
  if (kernel.fails) {
    pending.error = Status(StatusCode::kInternal, reason::kDeviceFailed,
                           "kernel '" + (*module)->info.kernels[launch.kernel].name +
                               "' fails, as its module says (fail=yes)");
  }
  return asked;
}

std::byte* VirtualDevice::Range(SessionId id, BufferId buffer, std::uint64_t offset,
                                std::uint64_t first, std::uint64_t count, std::uint64_t total,
                                Status& error) {
  const auto found = sessions_.FindBuffer(id, buffer);
  error = found ? CheckRange(offset, first, count, total, (*found)->bytes) : found.status();
  return error.ok() ? (*found)->buffer.data() + offset + first : nullptr;
}

Prepared VirtualDevice::Carry(Ticket ticket, const Preparation& preparation) {
  Prepared prepared;
  prepared.ticket = ticket;
  prepared.status =
      std::visit(Overloaded{
                     [&](const LoadModule& load) { return Carry(load, prepared.module); },
                     [&](const auto& other) { return Carry(other); },
                 },
                 preparation);
  return prepared;
}

Status VirtualDevice::Carry(const LoadModule& load, ModuleInfo& info) {
  for (const Image& image : load.images) {
    if (image.format != Image::Format::kVirtual) continue;
    return sessions_.AddModule(load.session, load.module, [&] {
      Result<VirtualModule> module = ParseVirtualModule(image.bytes);
      if (module) info = module->info;
      return module;
    });
  }
  return Status(StatusCode::kInvalidArgument, reason::kNoUsableImage,
                "none of the module's images is a virtual module, the only kind device " +
                    info_.uuid + " takes; add one, or choose another device");
}

Status VirtualDevice::Carry(const UnloadModule& unload) {
  return sessions_.RemoveModule(unload.session, unload.module);
}

Status VirtualDevice::Carry(const Allocate& allocate) {
  return sessions_.AddBuffer(allocate, [&](std::monostate) -> Result<LazyBytes> {
    std::optional<LazyBytes> bytes = LazyBytes::Make(allocate.bytes);
    if (bytes) return *std::move(bytes);
    return Status(StatusCode::kResourceExhausted, reason::kDeviceMemory,
                  "the host has no address space left for " + FormatBytes(allocate.bytes));
  });
}

Status VirtualDevice::Carry(const Free& free) {
  return sessions_.RemoveBuffer(free.session, free.buffer);
}

void VirtualDevice::Finish(const Pending& pending) {
  if (pending.bytes > 0) {
    if (pending.source != nullptr) {
      std::memcpy(pending.target, pending.source, pending.bytes);
    } else {
      std::memset(pending.target, pending.value, pending.bytes);
    }
  }
  Completion completion;
  completion.ticket = pending.ticket;
  completion.outcome =
      pending.error.ok() ? Completion::Outcome::kDone : Completion::Outcome::kFailed;
  completion.started = pending.span.started;
  completion.ended = pending.span.ended;
  completion.error = pending.error;
  sink_.Post(std::move(completion));
}

void VirtualDevice::RunTimer() {
  for (;;) {
    timer_.Wait();
    std::unique_lock lock(mutex_);
    if (closing_) return;
    ReportDue(lock);
  }
}

// Leaves with the timer set for the first that is not due. What Start adds meanwhile is seen here:
// it sets the timer only if nothing is pending and nothing is being reported.
void VirtualDevice::ReportDue(std::unique_lock<std::mutex>& lock) {
  while (!pending_.empty()) {
    const Time end = pending_.front().span.ended;
    if (end - kWakeEarly > DeviceNow()) {
      timer_.Set(end - kWakeEarly);
      return;
    }
    const Pending due = std::move(pending_.front());
    pending_.pop_front();
    reporting_ = true;
    lock.unlock();
    while (DeviceNow() < end) {}
    Finish(due);
    lock.lock();
    reporting_ = false;
  }
}

}  // namespace gpusched::device
