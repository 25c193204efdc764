// One thread that carries out preparations in order, off the executor's time.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace gpusched::device {

class PreparationLine {
 public:
  using Task = std::function<void()>;  // throws nothing

  // `at_start` runs on the new thread before any task.
  explicit PreparationLine(Task at_start = {});
  ~PreparationLine();  // carries out what was appended, then joins
  PreparationLine(const PreparationLine&) = delete;
  PreparationLine& operator=(const PreparationLine&) = delete;

  void Append(Task);

 private:
  void Run();

  // Guards the line between the executor, which appends, and the thread, which takes.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace gpusched::device
