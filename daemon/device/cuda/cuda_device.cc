// What the executor asks for: commands go onto their class's stream, and are found to be over.
#include "device/cuda/cuda_device.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <utility>

#include "device/cuda/error.h"
#include "device/cuda/ptx/boxes.h"
#include "device/device_clock.h"
#include "device/refusals.h"

namespace gpusched::device {
namespace {

// Events kept for the next commands: as many as are ever in flight, two each, and some to spare.
constexpr std::size_t kMostSpareEvents = 128;

Status BadShape(std::string_view why, const KernelInfo& info, const std::string& what) {
  return Status(StatusCode::kInvalidArgument, why, "kernel '" + info.name + "': " + what);
}

bool Exceeds(Dim3 shape, const std::array<std::uint32_t, 3>& most) {
  return shape.x > most[0] || shape.y > most[1] || shape.z > most[2];
}

std::string Show(Dim3 d) {
  return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
}

std::string Show(const std::array<std::uint32_t, 3>& d) { return Show(Dim3{d[0], d[1], d[2]}); }

dim3 ToCuda(Dim3 d) { return dim3(d.x, d.y, d.z); }

Duration Elapsed(float ms) { return Duration(static_cast<std::int64_t>(double{ms} * 1e6)); }

}  // namespace

CudaDevice::CudaDevice(OpenedCuda opened, CompletionSink& sink)
    : opened_(std::move(opened)),
      sink_(sink),
      quotas_(opened_.info.memory_bytes),
      staging_(std::move(opened_.staging), opened_.staging_bytes),
      line_(/*has_slow=*/true, [this] { UseDevice(); }) {
  lanes_.resize(opened_.work.size());
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].stream = std::move(opened_.work[i]);
}

// A lost device may still execute: nothing it reads or writes goes before it has come to rest.
CudaDevice::~CudaDevice() {
  UseDevice();
  for (Lane& lane : lanes_) {
    health_.Seen("closing the device", cudaStreamSynchronize(lane.stream.get()));
    lane.stream.reset();
  }
}

void CudaDevice::UseDevice() const {
  health_.Seen("choosing the device", cudaSetDevice(opened_.ordinal));
}

std::uint64_t CudaDevice::WaveBlocks(const LaunchCommand& launch) const {
  const Result<CudaModule*> module = FindModule(launch.session, launch.module);
  if (!module || launch.kernel >= (*module)->kernels.size()) return 1;
  CudaKernel& kernel = (*module)->kernels[launch.kernel];
  const KernelInfo& info = (*module)->info.kernels[launch.kernel];
  const BlockNeeds needs{.threads = Volume(launch.block),
                         .dynamic_bytes = launch.dynamic_local_bytes};
  // What is never cut, or is refused when it starts, is not worth a question.
  if (!info.cuttable || needs.threads == 0 || needs.threads > info.max_block_threads ||
      needs.dynamic_bytes > kernel.dynamic_limit) {
    return 1;
  }
  if (const auto known = kernel.waves.Find(needs)) return *known;
  if (health_.broken()) return 1;
  UseDevice();
  int on_one = 0;
  const cudaError_t error = health_.Seen(
      "asking how many blocks of kernel '" + info.name + "' run side by side",
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(
          &on_one, kernel.handle, static_cast<int>(needs.threads), needs.dynamic_bytes));
  if (error != cudaSuccess || on_one < 1) return 1;
  const std::uint64_t wave =
      std::min(kLargestWave, static_cast<std::uint64_t>(on_one) * opened_.info.compute_units);
  kernel.waves.Keep(needs, wave);
  return wave;
}

void CudaDevice::Start(Ticket ticket, const Command& command) {
  Flight flight;
  flight.ticket = ticket;
  flight.submitted = DeviceNow();
  flight.session = std::visit([](const auto& what) { return what.session; }, command.what);
  flight.lane = &lanes_[std::min<std::size_t>(command.priority_class, lanes_.size() - 1)];
  if (lost_) {
    return PostCompletion(flight, Completion::Outcome::kLost, LostStatus(),
                          {flight.submitted, flight.submitted});
  }
  UseDevice();
  flight.error = std::visit([&](const auto& what) { return Enqueue(what, flight); }, command.what);
  flights_.push_back(std::move(flight));
}

Status CudaDevice::Enqueue(const LaunchCommand& launch, Flight& flight) {
  flight.what = "a kernel";
  const Result<CudaModule*> module = FindModule(launch.session, launch.module);
  if (!module) return module.status();
  auto& kernels = (*module)->kernels;
  if (launch.kernel >= kernels.size()) return NoSuchKernel(launch.kernel, kernels.size());
  CudaKernel& kernel = kernels[launch.kernel];
  const KernelInfo& info = (*module)->info.kernels[launch.kernel];
  flight.what = "kernel '" + info.name + "'";
  if (Status status = CheckLaunch(launch, kernel, info); !status.ok()) return status;
  static const std::vector<Argument> kNone;
  const auto place = [&](BufferId id) -> Result<ArgumentPack::Place> {
    const Result<Buffer*> buffer = FindBuffer(launch.session, id);
    if (!buffer) return buffer.status();
    return ArgumentPack::Place{(*buffer)->memory.get(), (*buffer)->bytes};
  };
  Status packed =
      arguments_.Fill(kernel, info, launch.arguments != nullptr ? *launch.arguments : kNone,
                      opened_.info.offset_alignment, place);
  if (!packed.ok()) return packed;
  flight.learns = &kernel.time;
  flight.units = launch.count;
  flight.expected = kernel.time.Of(launch.count);
  return LaunchBoxes(launch, kernel, info, flight);
}

// The driver would say less, and only after parts of the launch were on their way.
Status CudaDevice::CheckLaunch(const LaunchCommand& launch, const CudaKernel& kernel,
                               const KernelInfo& info) const {
  const std::uint64_t blocks = Volume(launch.grid), threads = Volume(launch.block);
  if (blocks == 0 || Exceeds(launch.grid, opened_.largest_grid)) {
    return BadShape(reason::kBadGrid, info,
                    "a grid of " + Show(launch.grid) + " blocks; this device takes 1 x 1 x 1 to " +
                        Show(opened_.largest_grid));
  }
  if (launch.offset.x != 0 || launch.offset.y != 0 || launch.offset.z != 0) {
    return BadShape(reason::kBadGrid, info, "an offset of its ids, which CUDA does not have");
  }
  if (launch.first > blocks || launch.count > blocks - launch.first) {
    return BadShape(reason::kBadGrid, info, "a range of blocks that passes the end of the grid");
  }
  if (launch.count != blocks && !info.cuttable) {
    return Status(StatusCode::kUnimplemented, reason::kBadGrid,
                  "a part of a launch of kernel '" + info.name + "': " + info.whole_reason);
  }
  if (threads == 0 || threads > info.max_block_threads ||
      Exceeds(launch.block, opened_.largest_block)) {
    return BadShape(reason::kBadBlock, info,
                    "a block of " + Show(launch.block) + " threads; it can have " +
                        std::to_string(info.max_block_threads) + " threads, within " +
                        Show(opened_.largest_block));
  }
  if (launch.dynamic_local_bytes <= kernel.dynamic_limit) return Status::Ok();
  return BadShape(reason::kLocalMemory, info,
                  std::to_string(launch.dynamic_local_bytes) +
                      " bytes of dynamic shared memory; beside its own " +
                      std::to_string(info.static_local_bytes) + " it can have " +
                      std::to_string(kernel.dynamic_limit));
}

Status CudaDevice::LaunchBoxes(const LaunchCommand& launch, CudaKernel& kernel,
                               const KernelInfo& info, Flight& flight) {
  if (launch.count == 0) return Status::Ok();
  ptx::BoxList boxes;
  if (launch.count == Volume(launch.grid)) {
    boxes.Add({.offset = {0, 0, 0}, .extent = launch.grid});
  } else {
    boxes = ptx::CutIntoBoxes(launch.grid, launch.first, launch.count);
  }
  cudaLaunchConfig_t config{};
  config.blockDim = ToCuda(launch.block);
  config.dynamicSmemBytes = launch.dynamic_local_bytes;
  config.stream = flight.lane->stream.get();
  Begin(flight);
  Status status;
  for (const ptx::Box& box : boxes.boxes()) {
    config.gridDim = ToCuda(box.extent);
    void** const arguments = arguments_.WithBox(kernel, ptx::ToParameter(box, launch.grid));
    const cudaError_t error = health_.Seen("launching " + flight.what,
                                           cudaLaunchKernelExC(&config, kernel.handle, arguments));
    if (error != cudaSuccess) {
      status = CudaFailure("launching kernel '" + info.name + "'", error);
      break;
    }
    flight.enqueued = true;
  }
  End(flight);
  return status;
}

template <typename Copy>
Result<std::byte*> CudaDevice::Target(const Copy& copy) {
  const Result<Buffer*> buffer = FindBuffer(copy.session, copy.buffer);
  if (!buffer) return buffer.status();
  Status status = CheckRange(copy.offset, copy.first, copy.count, copy.total, (*buffer)->bytes);
  if (!status.ok()) return status;
  return (*buffer)->memory.get() + copy.offset + copy.first;
}

Status CudaDevice::Enqueue(const CopyInCommand& copy, Flight& flight) {
  flight.what = "a copy in";
  const Result<std::byte*> target = Target(copy);
  if (!target) return target.status();
  if (copy.count == 0) return Status::Ok();
  flight.learns = &copy_in_time_;
  flight.units = copy.count;
  flight.expected = copy_in_time_.Of(copy.count);
  // From memory that is not pinned the driver takes the bytes before it returns.
  const std::byte* source = copy.source + copy.first;
  flight.staged = staging_.Take(copy.count);
  if (flight.staged != nullptr) {
    std::memcpy(flight.staged, source, copy.count);
    source = flight.staged;
  }
  Begin(flight);
  const cudaError_t error = health_.Seen(
      "copying in", cudaMemcpyAsync(*target, source, copy.count, cudaMemcpyHostToDevice,
                                    flight.lane->stream.get()));
  flight.enqueued = error == cudaSuccess;
  End(flight);
  return error == cudaSuccess ? Status::Ok() : CudaFailure("copying in", error);
}

Status CudaDevice::Enqueue(const CopyOutCommand& copy, Flight& flight) {
  flight.what = "a copy out";
  const Result<std::byte*> source = Target(copy);
  if (!source) return source.status();
  if (copy.count == 0) return Status::Ok();
  flight.learns = &copy_out_time_;
  flight.units = copy.count;
  flight.expected = copy_out_time_.Of(copy.count);
  // Into memory that is not pinned the driver copies before it returns: slow, and right.
  flight.staged = staging_.Take(copy.count);
  std::byte* const target = copy.target + copy.first;
  if (flight.staged != nullptr) {
    flight.target = target;
    flight.bytes = copy.count;
  }
  Begin(flight);
  const cudaError_t error =
      health_.Seen("copying out",
                   cudaMemcpyAsync(flight.staged != nullptr ? flight.staged : target, *source,
                                   copy.count, cudaMemcpyDeviceToHost, flight.lane->stream.get()));
  flight.enqueued = error == cudaSuccess;
  End(flight);
  return error == cudaSuccess ? Status::Ok() : CudaFailure("copying out", error);
}

Status CudaDevice::Enqueue(const FillCommand& fill, Flight& flight) {
  flight.what = "a fill";
  const Result<std::byte*> target = Target(fill);
  if (!target) return target.status();
  if (fill.count == 0) return Status::Ok();
  flight.learns = &fill_time_;
  flight.units = fill.count;
  flight.expected = fill_time_.Of(fill.count);
  Begin(flight);
  const cudaError_t error = health_.Seen(
      "filling", cudaMemsetAsync(*target, fill.value, fill.count, flight.lane->stream.get()));
  flight.enqueued = error == cudaSuccess;
  End(flight);
  return error == cudaSuccess ? Status::Ok() : CudaFailure("filling", error);
}

void CudaDevice::Begin(Flight& flight) {
  flight.started = TakeEvent();
  if (flight.started == nullptr) return;
  if (health_.Seen("timing " + flight.what,
                   cudaEventRecord(flight.started.get(), flight.lane->stream.get())) !=
      cudaSuccess) {
    GiveEvent(std::move(flight.started));
  }
}

// Without an event the end is found by asking the whole stream, which is later but never wrong.
void CudaDevice::End(Flight& flight) {
  if (!flight.enqueued) return;
  flight.ended = TakeEvent();
  if (flight.ended == nullptr) return;
  if (health_.Seen("timing " + flight.what,
                   cudaEventRecord(flight.ended.get(), flight.lane->stream.get())) != cudaSuccess) {
    GiveEvent(std::move(flight.ended));
  }
}

CudaEventHandle CudaDevice::TakeEvent() {
  if (!spare_events_.empty()) {
    CudaEventHandle event = std::move(spare_events_.back());
    spare_events_.pop_back();
    return event;
  }
  cudaEvent_t made = nullptr;
  health_.Seen("making an event", cudaEventCreateWithFlags(&made, cudaEventDefault));
  return CudaEventHandle(made);
}

void CudaDevice::GiveEvent(CudaEventHandle event) {
  if (event != nullptr && spare_events_.size() < kMostSpareEvents) {
    spare_events_.push_back(std::move(event));
  }
}

Duration CudaDevice::Poll(Time now) {
  if (lost_) return kForever;
  UseDevice();
  if (!Reap() || flights_.empty()) return kForever;
  Duration soonest = kForever;
  VisitHeads([&](const Flight& first) {
    const Time begins = std::max(first.submitted, first.lane->last_ended);
    soonest = std::min(soonest, LookAgainIn(now, After(begins, first.expected)));
  });
  return soonest;
}

template <typename Visit>
void CudaDevice::VisitHeads(Visit visit) {
  std::bitset<kMostPriorityClasses> seen;
  for (Flight& flight : flights_) {
    const auto index = static_cast<std::size_t>(flight.lane - lanes_.data());
    if (seen.test(index)) continue;
    seen.set(index);
    visit(flight);
    if (seen.count() == lanes_.size()) return;
  }
}

bool CudaDevice::Reap() {
  for (auto over = FirstOver(); over != flights_.end(); over = FirstOver()) {
    Complete(*over);
    flights_.erase(over);
  }
  if (health_.broken()) Lose(health_.first());
  return !lost_;
}

// Of the lanes' first commands that are over, the one that ended first.
std::deque<CudaDevice::Flight>::iterator CudaDevice::FirstOver() {
  Flight* first = nullptr;
  VisitHeads([&](Flight& flight) {
    if (!flight.over) {
      const cudaError_t state = health_.broken() ? cudaErrorNotReady : Ask(flight);
      if (state == cudaErrorNotReady) return;
      if (state != cudaSuccess) {
        // A query that fails in any other way will not succeed again.
        return health_.Break("asking whether " + flight.what + " is over", state);
      }
      // Read after the end was seen: the turn's reading may be older than it.
      flight.over = TimesOf(flight, DeviceNow());
    }
    if (first == nullptr || flight.over->ended < first->over->ended) first = &flight;
  });
  return std::find_if(flights_.begin(), flights_.end(),
                      [&](const Flight& flight) { return &flight == first; });
}

cudaError_t CudaDevice::Ask(const Flight& flight) {
  if (!flight.enqueued) return cudaSuccess;
  return flight.ended != nullptr ? cudaEventQuery(flight.ended.get())
                                 : cudaStreamQuery(flight.lane->stream.get());
}

void CudaDevice::Complete(Flight& flight) {
  const bool failed = !flight.error.ok();
  const EventClock::Span times = *flight.over;
  if (flight.target != nullptr && !failed) {
    std::memcpy(flight.target, flight.staged, flight.bytes);
  }
  if (flight.staged != nullptr) staging_.Give(flight.staged);
  if (!failed && flight.learns != nullptr) {
    flight.learns->Learn(flight.units, times.ended - times.started);
  }
  PostCompletion(flight, failed ? Completion::Outcome::kFailed : Completion::Outcome::kDone,
                 std::move(flight.error), times);
}

// By events where there are any; else between what is known to have been before and after.
EventClock::Span CudaDevice::TimesOf(Flight& flight, Time seen) {
  Lane& lane = *flight.lane;
  EventClock::Span times{std::clamp(lane.last_ended, flight.submitted, seen), seen};
  if (!flight.enqueued) times.ended = times.started;
  float since_last = 0, length = 0;
  const auto elapsed = [this](float& ms, const CudaEventHandle& from, const CudaEventHandle& to) {
    return health_.Seen("timing a command", cudaEventElapsedTime(&ms, from.get(), to.get())) ==
           cudaSuccess;
  };
  if (flight.ended != nullptr && flight.started != nullptr &&
      elapsed(length, flight.started, flight.ended) &&
      (lane.last_end == nullptr || elapsed(since_last, lane.last_end, flight.started))) {
    times = lane.clock.Place(Elapsed(since_last), Elapsed(length), flight.submitted, seen);
    std::swap(lane.last_end, flight.ended);
  }
  GiveEvent(std::move(flight.started));
  GiveEvent(std::move(flight.ended));
  return times;
}

void CudaDevice::PostCompletion(const Flight& flight, Completion::Outcome outcome, Status error,
                                EventClock::Span times) {
  Lane& lane = *flight.lane;
  last_ended_ = lane.last_ended = std::max(last_ended_, times.ended);
  lane.last_started = std::clamp(times.started, lane.last_started, lane.last_ended);
  Completion completion;
  completion.ticket = flight.ticket;
  completion.outcome = outcome;
  completion.started = lane.last_started;
  completion.ended = lane.last_ended;
  completion.error = std::move(error);
  sink_.Post(std::move(completion));
}

// The first command of each lane was executing, so it is their sessions that are named.
void CudaDevice::Lose(std::string_view seen) {
  lost_ = true;
  std::string running;
  VisitHeads([&](const Flight& first) {
    running += (running.empty() ? "" : " and ") + first.what + " of session " +
               std::to_string(first.session.serial);
  });
  running = running.empty() ? "nothing was in flight" : running + " was running";
  const Status why(StatusCode::kUnavailable, reason::kDeviceLost,
                   "device " + opened_.info.uuid + " is lost: " + std::string(seen) + "; " +
                       running + "; only a new gpuschedd gets it back");
  const Time now = DeviceNow();
  while (!flights_.empty()) {
    Flight flight = std::move(flights_.front());
    flights_.pop_front();
    PostCompletion(flight, Completion::Outcome::kLost, why, {now, now});
  }
  sink_.Post(Lost{why});
}

Status CudaDevice::LostStatus() const {
  return Status(StatusCode::kUnavailable, reason::kDeviceLost,
                "device " + opened_.info.uuid + " is lost: " + health_.first() +
                    "; only a new gpuschedd gets it back");
}

}  // namespace gpusched::device
