// Orders for a device under test, and a sink that remembers what it answered.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/device_clock.h"

namespace gpusched::device {

// Far beyond what any answer takes, also under a sanitizer on a busy machine.
inline constexpr std::chrono::seconds kAnswerDeadline{60};

class RecordingSink final : public CompletionSink {
 public:
  void Post(Completion completion) override {
    const Time now = DeviceNow();
    Record([&] {
      if (completion.ended > now) ++too_early_;
      completions_.push_back(std::move(completion));
    });
  }
  void Post(Prepared prepared) override {
    Record([&] { prepared_.push_back(std::move(prepared)); });
  }
  void Post(Lost) override {
    Record([&] { ++losses_; });
  }
  void Post(Restored) override {}

  // The answer to `ticket`; throws, and so fails the test, if there is none within the deadline.
  Completion Finished(Ticket ticket) { return Await(completions_, ticket); }
  Prepared Done(Ticket ticket) { return Await(prepared_, ticket); }

  // In the order of their posting.
  std::vector<Completion> completions() {
    std::lock_guard lock(mutex_);
    return completions_;
  }
  std::vector<Prepared> prepared() {
    std::lock_guard lock(mutex_);
    return prepared_;
  }
  // Completions posted before their end had passed.
  int too_early() {
    std::lock_guard lock(mutex_);
    return too_early_;
  }
  int losses() {
    std::lock_guard lock(mutex_);
    return losses_;
  }

 private:
  template <typename Note>
  void Record(Note note) {
    {
      std::lock_guard lock(mutex_);
      note();
    }
    changed_.notify_all();
  }

  template <typename Answer>
  Answer Await(const std::vector<Answer>& answers, Ticket ticket) {
    std::unique_lock lock(mutex_);
    const Answer* found = nullptr;
    const bool came = changed_.wait_for(lock, kAnswerDeadline, [&] {
      for (const Answer& answer : answers) {
        if (answer.ticket == ticket) found = &answer;
      }
      return found != nullptr;
    });
    if (!came)
      throw std::runtime_error("no answer to ticket " + std::to_string(std::uint64_t(ticket)));
    return *found;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Completion> completions_;
  std::vector<Prepared> prepared_;
  int too_early_ = 0;
  int losses_ = 0;
};

// Plays the executor: gives tickets out and keeps what commands point to until the end of the test.
class Orders {
 public:
  Orders(Device& device, RecordingSink& sink) : device_(device), sink_(sink) {}

  Ticket Prepare(Preparation preparation) {
    const Ticket ticket = NextTicket();
    device_.Prepare(ticket, std::move(preparation));
    return ticket;
  }
  Prepared Carry(Preparation preparation) { return sink_.Done(Prepare(std::move(preparation))); }
  Prepared Load(SessionId session, ModuleId module, const Image& image) {
    return Carry(LoadModule{.session = session, .module = module, .images = {image}});
  }
  Status Allocate(SessionId session, BufferId buffer, std::uint64_t bytes) {
    return Carry(device::Allocate{.session = session, .buffer = buffer, .bytes = bytes}).status;
  }
  Status Free(SessionId session, BufferId buffer) {
    return Carry(device::Free{.session = session, .buffer = buffer}).status;
  }
  Status Close(SessionId session) {
    const Ticket ticket = NextTicket();
    device_.CloseSession(session, ticket);
    return sink_.Done(ticket).status;
  }

  Ticket Start(Command command) {
    if (command.submitted == Time{}) command.submitted = DeviceNow();
    const Ticket ticket = NextTicket();
    device_.Start(ticket, command);
    return ticket;
  }
  Completion Run(Command command) { return sink_.Finished(Start(std::move(command))); }

  // The whole launch; the arguments live as long as this object.
  LaunchCommand Launch(SessionId session, ModuleId module, std::uint32_t kernel, Dim3 grid,
                       Dim3 block, std::vector<Argument> arguments = {}) {
    kept_.push_back(std::make_unique<std::vector<Argument>>(std::move(arguments)));
    return {.session = session,
            .module = module,
            .kernel = kernel,
            .grid = grid,
            .block = block,
            .arguments = kept_.back().get(),
            .count = Volume(grid)};
  }
  template <typename T>
  Completion Write(SessionId session, BufferId buffer, const std::vector<T>& values,
                   std::uint64_t offset = 0) {
    const std::uint64_t bytes = values.size() * sizeof(T);
    return Run({CopyInCommand{.session = session,
                              .buffer = buffer,
                              .offset = offset,
                              .source = reinterpret_cast<const std::byte*>(values.data()),
                              .count = bytes,
                              .total = bytes}});
  }
  template <typename T>
  std::vector<T> Read(SessionId session, BufferId buffer, std::size_t count,
                      std::uint64_t offset = 0) {
    std::vector<T> values(count);
    const std::uint64_t bytes = count * sizeof(T);
    const Completion done =
        Run({CopyOutCommand{.session = session,
                            .buffer = buffer,
                            .offset = offset,
                            .target = reinterpret_cast<std::byte*>(values.data()),
                            .count = bytes,
                            .total = bytes}});
    if (done.outcome != Completion::Outcome::kDone) throw std::runtime_error(done.error.ToString());
    return values;
  }

 private:
  Ticket NextTicket() { return Ticket{++last_ticket_}; }

  Device& device_;
  RecordingSink& sink_;
  std::uint64_t last_ticket_ = 0;
  std::vector<std::unique_ptr<std::vector<Argument>>> kept_;
};

template <typename T>
ValueArgument Value(T value) {
  ValueArgument bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace gpusched::device
