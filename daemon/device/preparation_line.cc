// The preparing thread: takes the oldest task, carries it out, until the line closes empty.
#include "device/preparation_line.h"

#include <utility>

namespace gpusched::device {

PreparationLine::PreparationLine(Task at_start)
    : thread_([this, at_start = std::move(at_start)] {
        if (at_start) at_start();
        Run();
      }) {}

PreparationLine::~PreparationLine() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void PreparationLine::Append(Task task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void PreparationLine::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes before the next is waited for
    lock.lock();
  }
}

}  // namespace gpusched::device
