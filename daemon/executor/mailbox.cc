// The baton's moves: bring, take, lay down.
#include "executor/mailbox.h"

namespace gpusched::executor {

void Mailbox::Bring(Item item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    if (held_) return;
    held_ = true;
  }
  run_();
}

void Mailbox::Post(std::vector<device::Completion> all) {
  {
    const std::lock_guard lock(mutex_);
    for (device::Completion& one : all) items_.emplace_back(std::move(one));
    if (held_) return;
    held_ = true;
  }
  run_();
}

bool Mailbox::Take(std::vector<Item>& items) {
  const std::lock_guard lock(mutex_);
  items.swap(items_);
  return !items.empty();
}

bool Mailbox::LayDown() {
  const std::lock_guard lock(mutex_);
  if (!items_.empty()) return false;
  held_ = false;
  // Under the lock: whoever waits may not go, and the mailbox with him, before this is over.
  if (awaited_) laid_down_.notify_one();
  return true;
}

void Mailbox::TakeForGood() {
  std::unique_lock lock(mutex_);
  awaited_ = true;
  laid_down_.wait(lock, [this] { return !held_; });
  held_ = true;
}

}  // namespace gpusched::executor
