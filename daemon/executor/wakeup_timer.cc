// Sets a timerfd and has the event thread read it.
#include <utility>  // Boost 1.74's asio forgets it under C++20.

#include "executor/wakeup_timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace gpusched::executor {

namespace asio = boost::asio;

struct WakeupTimer::Watch : std::enable_shared_from_this<Watch> {
  Watch(asio::io_context& events, int fd, std::function<void()> call)
      : descriptor(events, fd), fired(std::move(call)) {}

  void Await() {
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                          [self = shared_from_this()](const boost::system::error_code& error) {
                            if (error) return;
                            std::uint64_t times = 0;
                            if (read(self->descriptor.native_handle(), &times, sizeof times) > 0) {
                              self->fired();
                            }
                            self->Await();
                          });
  }

  asio::posix::stream_descriptor descriptor;
  std::function<void()> fired;
};

WakeupTimer::WakeupTimer(asio::io_context& events, std::function<void()> fired) {
  const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
  watch_ = std::make_shared<Watch>(events, fd, std::move(fired));
  watch_->Await();
}

WakeupTimer::~WakeupTimer() { watch_->descriptor.close(); }

void WakeupTimer::WakeBy(Time when) {
  if (when >= set_for_) return;
  set_for_ = when;
  constexpr std::int64_t kSecond = 1'000'000'000;
  // Zero would disarm it; the epoch itself is long past.
  const std::int64_t ns = std::max<std::int64_t>(when.time_since_epoch().count(), 1);
  itimerspec setting{};
  setting.it_value.tv_sec = ns / kSecond;
  setting.it_value.tv_nsec = ns % kSecond;
  timerfd_settime(watch_->descriptor.native_handle(), TFD_TIMER_ABSTIME, &setting, nullptr);
}

}  // namespace gpusched::executor
