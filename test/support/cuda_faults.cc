// Two sessions, copies, whole launches and parts, on a device whose runtime fails.
#include "support/cuda_faults.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "device/cuda_stand_in.h"

namespace gpusched::test {
namespace {

using device::BufferArgument;
using device::Completion;
using device::LaunchCommand;
using device::Orders;
using device::Prepared;
using device::Ticket;

// Beyond any answer; a story takes milliseconds.
constexpr std::chrono::seconds kDeadline{30};
constexpr std::size_t kWords = 64;

// Counts answers instead of waiting for one of them.
class CountingSink final : public device::CompletionSink {
 public:
  void Post(Completion completion) override {
    Note([&] {
      if (completion.outcome == Completion::Outcome::kFailed) ++failed;
      if (completion.outcome == Completion::Outcome::kLost) ++lost;
      all_done = all_done && completion.outcome == Completion::Outcome::kDone;
      ++answers[completion.ticket];
      if (losses > 0 && completion.outcome != Completion::Outcome::kLost) lost_too_early = true;
    });
  }
  void Post(Prepared prepared) override {
    Note([&] {
      all_done = all_done && prepared.status.ok();
      ++answers[prepared.ticket];
    });
  }
  void Post(device::Lost loss) override {
    Note([&] {
      ++losses;
      why = loss.why.message();
    });
  }
  void Post(device::Restored) override {}

  void NotDone() {
    Note([&] { all_done = false; });
  }

  bool AwaitAll(std::size_t tickets) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return answers.size() >= tickets; });
  }

  std::map<Ticket, int> answers;
  std::uint64_t failed = 0, lost = 0;
  int losses = 0;
  bool lost_too_early = false, all_done = true;
  std::string why;

 private:
  template <typename Change>
  void Note(Change change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
};

// Plays the executor: each order gets a ticket.
class Story {
 public:
  Story(device::Device& device, CountingSink& sink) : device_(device), sink_(sink) {}

  void Play() {
    const SessionId sessions[] = {{.slot = 0, .serial = 1}, {.slot = 1, .serial = 2}};
    for (const SessionId session : sessions) {
      const Status opened = device_.OpenSession(session, {.memory_bytes = 1 << 20});
      if (!opened.ok()) sink_.NotDone();
      Prepare(device::LoadModule{.session = session, .module = 1, .images = {image_}});
      Prepare(device::Allocate{.session = session, .buffer = 1, .bytes = kWords * 4});
    }
    AwaitAll();
    for (const SessionId session : sessions) Compute(session);
    AwaitAll();
    for (const SessionId session : sessions) {
      Prepare(device::Free{.session = session, .buffer = 1});
      Prepare(device::UnloadModule{.session = session, .module = 1});
      device_.CloseSession(session, Next());
    }
    AwaitAll();
  }
  std::uint64_t tickets() const { return last_; }
  bool answered() const { return answered_; }
  bool right() const {
    for (std::uint32_t i = 0; i < kWords; ++i) {
      if (out_[0][i] != i + 1 || out_[1][i] != i + 1) return false;
    }
    return true;
  }

 private:
  void Compute(SessionId session) {
    auto& out = out_[session.slot];
    out.assign(kWords, 0);
    Start(device::FillCommand{
        .session = session, .buffer = 1, .value = 9, .count = kWords * 4, .total = kWords * 4});
    Start(device::CopyInCommand{.session = session,
                                .buffer = 1,
                                .source = reinterpret_cast<const std::byte*>(in_.data()),
                                .count = kWords * 4,
                                .total = kWords * 4});
    LaunchCommand launch{.session = session,
                         .module = 1,
                         .kernel = 0,
                         .grid = {8, 8},
                         .block = {},
                         .arguments = &arguments_};
    for (const std::uint64_t count : {13u, 40u, 11u}) {
      launch.count = count;
      if (device_.WaveBlocks(launch) < 1) sink_.NotDone();
      Start(launch);
      launch.first += count;
    }
    Start(device::CopyOutCommand{.session = session,
                                 .buffer = 1,
                                 .target = reinterpret_cast<std::byte*>(out.data()),
                                 .count = kWords * 4,
                                 .total = kWords * 4});
  }
  template <typename What>
  void Start(What what) {
    device_.Start(Next(), {.what = std::move(what), .submitted = device::DeviceNow()});
  }
  void Prepare(device::Preparation preparation) { device_.Prepare(Next(), std::move(preparation)); }
  Ticket Next() { return Ticket{++last_}; }
  void AwaitAll() { answered_ = sink_.AwaitAll(last_) && answered_; }

  device::Device& device_;
  CountingSink& sink_;
  const device::Image image_ = device::Ptx(device::kWho);
  const std::vector<device::Argument> arguments_ = {BufferArgument{.buffer = 1}};
  const std::vector<std::uint32_t> in_ = std::vector<std::uint32_t>(kWords, 77);
  std::vector<std::uint32_t> out_[2];
  std::uint64_t last_ = 0;
  bool answered_ = true;
};

void Blame(FaultTally& tally, std::uint64_t& count, const std::string& story,
           const std::string& what) {
  ++count;
  if (tally.first.empty()) tally.first = story + ": " + what;
}

void PlayOnce(std::uint64_t n, bool again, cudaError_t error, FaultTally& tally) {
  InstallDriver(DefaultDriver());
  CountingSink sink;
  auto devices = device::OpenStandIns(sink, 1);
  if (!devices.ok()) return;
  const std::string story = std::string(again ? "every " : "call ") + std::to_string(n) + " with " +
                            cudaGetErrorName(error);
  {
    device::PolledDevice device(std::move(devices->front()));
    Story played(device, sink);
    if (again) {
      FailEvery(n, error);
    } else {
      FailCall(n, error);
    }
    played.Play();
    ForgetFailures();
    ++tally.stories;
    tally.orders += played.tickets();
    if (!played.answered()) Blame(tally, tally.unanswered, story, "an order was not answered");
    if (sink.all_done && !played.right()) {
      Blame(tally, tally.wrong_results, story, "all is said to be done, and a result is wrong");
    }
  }
  for (const auto& [ticket, answers] : sink.answers) {
    if (answers != 1) Blame(tally, tally.doubled, story, "an order was answered twice");
  }
  const bool words = sink.why.find("session ") != std::string::npos ||
                     sink.why.find("nothing was in flight") != std::string::npos;
  if (sink.losses > 1 || sink.lost_too_early || (sink.losses == 1 && !words)) {
    Blame(tally, tally.wrong_losses, story, "the loss was told wrongly: " + sink.why);
  }
  tally.failed += sink.failed;
  tally.lost += sink.lost;
}

}  // namespace

FaultTally CheckCudaFaults(std::uint64_t most) {
  FaultTally tally;
  for (std::uint64_t n = 1; n <= most; ++n) {
    for (const cudaError_t error : {cudaErrorMemoryAllocation, cudaErrorInvalidValue,
                                    cudaErrorUnknown, cudaErrorIllegalAddress}) {
      for (const bool again : {false, true}) PlayOnce(n, again, error, tally);
    }
  }
  InstallDriver(DefaultDriver());
  return tally;
}

}  // namespace gpusched::test
