// The preparing threads: each takes the first task of a lane that nobody works in.
#include "device/preparation_line.h"

#include <cstddef>
#include <memory>
#include <system_error>
#include <utility>

namespace gpusched::device {
namespace {

// PoCL overflows the usual 8 MiB at some 10,000 operations in a row. What is never touched takes no
// memory.
constexpr std::size_t kCompilersStack = std::size_t{512} << 20;

void* Enter(void* entry) {
  const std::unique_ptr<PreparationLine::Task> task(static_cast<PreparationLine::Task*>(entry));
  (*task)();
  return nullptr;
}

// std::thread has no say in the size of its stack. Zero: the usual one.
pthread_t StartThread(std::size_t stack_bytes, PreparationLine::Task task) {
  auto entry = std::make_unique<PreparationLine::Task>(std::move(task));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack_bytes != 0) pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread{};
  int error = pthread_create(&thread, &attributes, Enter, entry.get());
  pthread_attr_destroy(&attributes);
  // Where a limit on address space forbids it, the usual one has to do.
  if (error != 0 && stack_bytes != 0) {
    error = pthread_create(&thread, nullptr, Enter, entry.get());
  }
  if (error != 0) throw std::system_error(error, std::generic_category(), "pthread_create");
  entry.release();  // the thread's
  return thread;
}

}  // namespace

PreparationLine::PreparationLine(bool has_slow, Task at_start) : has_slow_(has_slow) {
  const auto start = [&](Pace pace) {
    const std::size_t stack = pace == Pace::kSlow ? kCompilersStack : 0;
    threads_.push_back(StartThread(stack, [this, pace, at_start] {
      if (at_start) at_start();
      Run(pace);
    }));
  };
  try {
    start(Pace::kQuick);
    if (has_slow) start(Pace::kSlow);
  } catch (...) {  // no thread to spare: one that runs may not outlive this
    Close();
    throw;
  }
}

PreparationLine::~PreparationLine() { Close(); }

void PreparationLine::Close() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
}

void PreparationLine::Append(SessionId session, Pace pace, Task task) {
  if (!has_slow_) pace = Pace::kQuick;
  {
    std::lock_guard lock(mutex_);
    const auto lane = lanes_.try_emplace(session.serial).first;
    const bool first = lane->second.waiting.empty() && !lane->second.busy;
    lane->second.waiting.push_back({pace, std::move(task)});
    if (first) Ready(pace).push_back(lane);
  }
  changed_.notify_all();
}

void PreparationLine::Run(Pace pace) {
  std::unique_lock lock(mutex_);
  for (;;) {
    // A lane's last task is out of lanes_ only when done, so nobody leaves before the line is
    // empty.
    changed_.wait(lock, [&] { return !Ready(pace).empty() || (closing_ && lanes_.empty()); });
    if (Ready(pace).empty()) return;
    const auto lane = Ready(pace).front();
    Ready(pace).pop_front();
    Task task = std::move(lane->second.waiting.front().task);
    lane->second.waiting.pop_front();
    lane->second.busy = true;
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes before the next is waited for
    lock.lock();
    lane->second.busy = false;
    if (lane->second.waiting.empty()) {
      lanes_.erase(lane);
    } else {
      Ready(lane->second.waiting.front().pace).push_back(lane);
    }
    changed_.notify_all();
  }
}

}  // namespace gpusched::device
