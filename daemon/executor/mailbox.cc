// The baton's three moves: bring, take, lay down.
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

bool Mailbox::Take(std::vector<Item>& items) {
  const std::lock_guard lock(mutex_);
  items.swap(items_);
  return !items.empty();
}

bool Mailbox::LayDown() {
  const std::lock_guard lock(mutex_);
  if (!items_.empty()) return false;
  held_ = false;
  return true;
}

}  // namespace gpusched::executor
