// Reads endpoints; claims, cleans and opens unix sockets.
#include "rpc/endpoint.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "gpusched/reasons.h"

namespace gpusched::rpc {
namespace {

Status Bad(std::string message) {
  return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration, std::move(message));
}

Status InUse(const std::string& path, const std::string& how) {
  return Status(StatusCode::kAlreadyExists, reason::kSocketInUse,
                "unix:" + path + " " + how + "; stop the other daemon or choose another endpoint");
}

Status Failed(const std::string& what) {
  return Status(StatusCode::kFailedPrecondition, reason::kBadConfiguration,
                what + ": " + std::strerror(errno));
}

bool SomebodyListens(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  // A full backlog has a listener behind it.
  const bool listens = result == 0 || errno == EAGAIN;
  close(fd);
  return listens;
}

}  // namespace

Result<Endpoint> Endpoint::Parse(std::string_view text) {
  Endpoint endpoint;
  endpoint.text = text;
  if (text.starts_with("unix:")) {
    std::string_view path = text.substr(5);
    if (path.starts_with("//")) path.remove_prefix(2);
    if (path.empty()) return Bad("endpoint '" + endpoint.text + "' names no path");
    if (path.size() >= sizeof sockaddr_un{}.sun_path) {
      return Bad("the socket's path " + std::string(path) + " has more than the " +
                 std::to_string(sizeof sockaddr_un{}.sun_path - 1) +
                 " bytes a unix socket may have");
    }
    endpoint.path = path;
    endpoint.text = "unix:" + endpoint.path;
    return endpoint;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) {
    return Bad("endpoint '" + endpoint.text + "' is neither unix:/path nor host:port");
  }
  const std::string_view host = text.substr(0, colon), port = text.substr(colon + 1);
  if (port.size() > 5 || port.find_first_not_of("0123456789") != std::string_view::npos ||
      std::stoi(std::string(port)) > 65'535) {
    return Bad("endpoint '" + endpoint.text + "': port '" + std::string(port) +
               "' is no number from 0 to 65535");
  }
  endpoint.loopback = host == "localhost" || host == "[::1]" || host.starts_with("127.");
  return endpoint;
}

Result<SocketClaim> SocketClaim::Take(const std::string& path) {
  std::error_code ignored;  // what is wrong with the folder shows when the lock is opened
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const std::string lock_path = path + ".lock";
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return Failed("cannot open " + lock_path);
  SocketClaim claim({}, lock);
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) return InUse(path, "belongs to a running daemon");
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) return Bad(path + " is there and is no socket; it is left alone");
    if (SomebodyListens(path)) return InUse(path, "is in use by another program");
    if (unlink(path.c_str()) != 0) return Failed("cannot remove the stale socket " + path);
  }
  claim.path_ = path;
  return claim;
}

SocketClaim::SocketClaim(SocketClaim&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

SocketClaim::~SocketClaim() {
  if (!path_.empty()) unlink(path_.c_str());
  if (lock_ >= 0) close(lock_);
}

Status SocketClaim::Open(unsigned mode, const std::string& group) const {
  if (!group.empty()) {
    const struct group* const entry = getgrnam(group.c_str());
    if (entry == nullptr) return Bad("there is no group '" + group + "'");
    if (chown(path_.c_str(), static_cast<uid_t>(-1), entry->gr_gid) != 0) {
      return Failed("cannot give " + path_ + " to group " + group);
    }
  }
  if (chmod(path_.c_str(), mode) != 0) return Failed("cannot set the mode of " + path_);
  return Status::Ok();
}

}  // namespace gpusched::rpc
