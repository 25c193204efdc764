// The preparing threads: each takes the first task of a lane that nobody works in.
#include "device/preparation_line.h"

#include <utility>

namespace gpusched::device {

PreparationLine::PreparationLine(bool has_slow, Task at_start) : has_slow_(has_slow) {
  const auto start = [&](Pace pace) {
    threads_.emplace_back([this, pace, at_start] {
      if (at_start) at_start();
      Run(pace);
    });
  };
  start(Pace::kQuick);
  if (has_slow) start(Pace::kSlow);
}

PreparationLine::~PreparationLine() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
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
