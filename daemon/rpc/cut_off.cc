// Finds the connections among the process's descriptors by the address they came in at.
#include "rpc/cut_off.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

namespace gpusched::rpc {
namespace {

// A connection that came in at the last moment is found at the next look.
constexpr std::chrono::milliseconds kLookAgain(50);

std::string_view PortOf(std::string_view endpoint) {
  return endpoint.substr(endpoint.rfind(':') + 1);
}

bool CameInAt(int fd, const std::vector<std::string>& endpoints) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  if (address.ss_family == AF_UNIX) {
    const auto& local = reinterpret_cast<const sockaddr_un&>(address);
    return std::find(endpoints.begin(), endpoints.end(), "unix:" + std::string(local.sun_path)) !=
           endpoints.end();
  }
  in_port_t port = 0;
  if (address.ss_family == AF_INET) port = reinterpret_cast<sockaddr_in&>(address).sin_port;
  if (address.ss_family == AF_INET6) port = reinterpret_cast<sockaddr_in6&>(address).sin6_port;
  if (port == 0) return false;
  const std::string text = std::to_string(ntohs(port));
  return std::any_of(endpoints.begin(), endpoints.end(), [&](const std::string& endpoint) {
    return !endpoint.starts_with("unix:") && PortOf(endpoint) == text;
  });
}

void CutAll(const std::vector<std::string>& endpoints) {
  std::error_code gone;
  for (std::filesystem::directory_iterator at("/proc/self/fd", gone), end; at != end;
       at.increment(gone)) {
    if (gone) return;
    const std::string name = at->path().filename();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (fd >= 0 && CameInAt(fd, endpoints)) shutdown(fd, SHUT_RDWR);
  }
}

}  // namespace

CutOff::CutOff(std::vector<std::string> endpoints, std::chrono::milliseconds after)
    : thread_([endpoints = std::move(endpoints), after](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any stopped;
        std::unique_lock lock(mutex);
        const auto never = [] { return false; };
        for (auto wait = after; !stop.stop_requested(); wait = kLookAgain) {
          stopped.wait_for(lock, stop, wait, never);
          if (!stop.stop_requested()) CutAll(endpoints);
        }
      }) {}

}  // namespace gpusched::rpc
