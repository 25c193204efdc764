// Accepts, notes the peer's credentials, hands the connection on.
#include "rpc/unix_door.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <utility>

#include "gpusched/reasons.h"

namespace gpusched::rpc {
namespace {

// Thousands of clients may come at once after a restart; the kernel caps it by net.core.somaxconn.
constexpr int kBacklog = 4'096;
// Without a free descriptor nobody can be let in; somebody may leave meanwhile.
constexpr int kPauseMs = 50;

Status Failed(const std::string& what, const std::string& path) {
  return Status(StatusCode::kFailedPrecondition, reason::kBadConfiguration,
                what + " unix:" + path + ": " + std::strerror(errno));
}

}  // namespace

Result<std::unique_ptr<UnixDoor>> UnixDoor::Make(const std::string& path, unsigned mode,
                                                 const std::string& group) {
  Result<SocketClaim> claim = SocketClaim::Take(path);
  if (!claim.ok()) return claim.status();
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return Failed("cannot make", path);
  const int stop = eventfd(0, EFD_CLOEXEC);
  std::unique_ptr<UnixDoor> door(new UnixDoor(*std::move(claim), listener, stop));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  // Before it has a name, so that it is never open wider than it should be.
  if (fchmod(listener, mode) != 0 ||
      bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Failed("cannot bind", path);
  }
  if (Status opened = door->claim_.Open(mode, group); !opened.ok()) return opened;
  if (stop < 0 || listen(listener, kBacklog) != 0) return Failed("cannot listen on", path);
  return door;
}

void UnixDoor::Close() {
  const std::uint64_t one = 1;
  // An eventfd takes eight bytes unless its count is full, which one write cannot make it.
  if (thread_.joinable() && write(stop_, &one, sizeof one) == sizeof one) thread_.join();
}

UnixDoor::~UnixDoor() {
  Close();
  close(listener_);
  if (stop_ >= 0) close(stop_);
}

void UnixDoor::Open(std::function<void(int fd)> enter) {
  enter_ = std::move(enter);
  thread_ = std::thread([this] { Run(); });
}

void UnixDoor::Run() {
  for (;;) {
    std::array<pollfd, 2> waits{pollfd{stop_, POLLIN, 0}, pollfd{listener_, POLLIN, 0}};
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    if ((waits[0].revents & POLLIN) != 0) return;
    if ((waits[1].revents & POLLIN) != 0) LetIn();
  }
}

void UnixDoor::LetIn() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
    pollfd wait{stop_, POLLIN, 0};
    poll(&wait, 1, kPauseMs);
    return;
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  std::string who = "unknown";
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
    who = "pid " + std::to_string(peer.pid) + " uid " + std::to_string(peer.uid);
  }
  {
    const std::lock_guard lock(mutex_);
    peers_[fd] = std::move(who);
  }
  enter_(fd);
}

std::string UnixDoor::Who(const std::string& peer) const {
  constexpr std::string_view kPrefix = "fd:";
  if (!peer.starts_with(kPrefix)) return "";
  int fd = -1;
  std::from_chars(peer.data() + kPrefix.size(), peer.data() + peer.size(), fd);
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(fd);
  return at == peers_.end() ? "" : at->second;
}

}  // namespace gpusched::rpc
