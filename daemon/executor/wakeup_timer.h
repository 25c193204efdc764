// An executor's alarm: a timerfd that any thread may set, watched by the event thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "gpusched/policy/types.h"

namespace gpusched::executor {

// Not an asio::steady_timer: that one belongs to the event thread, which would have to be woken for
// every new setting. Destroyed on the event thread or after it has ended.
class WakeupTimer {
 public:
  WakeupTimer(boost::asio::io_context& events, std::function<void()> fired);
  ~WakeupTimer();
  WakeupTimer(const WakeupTimer&) = delete;
  WakeupTimer& operator=(const WakeupTimer&) = delete;

  // Fires at `when` at the latest, once; earlier settings that are still to come are kept, since a
  // wake-up too many costs less than setting the clock each turn. For the holder of the baton.
  void WakeBy(Time when);
  // The alarm went off: none is set any more.
  void Fired() { set_for_ = kNever; }

 private:
  struct Watch;
  std::shared_ptr<Watch> watch_;
  Time set_for_ = kNever;
};

}  // namespace gpusched::executor
