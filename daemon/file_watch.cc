// inotify on every folder that the path goes through.
#include "file_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "gpusched/reasons.h"

namespace gpusched::daemon {
namespace {

// A path with more links than this is a loop.
constexpr int kMostLinks = 16;
constexpr std::uint32_t kEvents =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_MOVE_SELF;

Status Failed(const std::string& what) {
  return Status(StatusCode::kInternal, reason::kBadConfiguration,
                what + ": " + std::strerror(errno));
}

}  // namespace

Result<std::unique_ptr<FileWatch>> FileWatch::Start(const std::string& path,
                                                    std::function<void()> changed) {
  const int notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (notify < 0) return Failed("inotify_init");
  const int stop = eventfd(0, EFD_CLOEXEC);
  if (stop < 0) {
    close(notify);
    return Failed("eventfd");
  }
  return std::unique_ptr<FileWatch>(new FileWatch(path, std::move(changed), notify, stop));
}

FileWatch::FileWatch(std::string path, std::function<void()> changed, int notify, int stop)
    : path_(std::move(path)), changed_(std::move(changed)), notify_(notify), stop_(stop) {
  WatchFolders();
  thread_ = std::thread([this] { Run(); });
}

FileWatch::~FileWatch() {
  const std::uint64_t one = 1;
  // An eventfd takes eight bytes unless its count is full, which one write cannot make it.
  if (write(stop_, &one, sizeof one) == sizeof one) thread_.join();
  close(notify_);
  close(stop_);
}

// The folder of the path itself and of each link it leads through, in the file's name or before it.
// Watching a folder again changes nothing.
void FileWatch::WatchFolders() {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path path = fs::absolute(path_, error);
  for (int links = 0; links < kMostLinks; ++links) {
    inotify_add_watch(notify_, path.parent_path().c_str(), kEvents);
    fs::path walked, next;
    for (const fs::path& part : path) {
      const fs::path here = walked / part;
      if (next.empty() && fs::is_symlink(here, error)) {
        inotify_add_watch(notify_, walked.c_str(), kEvents);
        const fs::path target = fs::read_symlink(here, error);
        next = target.is_absolute() ? target : walked / target;
      } else if (!next.empty()) {
        next /= part;
      }
      walked = here;
    }
    if (next.empty()) return;
    path = next.lexically_normal();
  }
}

void FileWatch::Run() {
  for (;;) {
    std::array<pollfd, 2> waits{pollfd{notify_, POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    if ((waits[1].revents & POLLIN) != 0) return;
    if ((waits[0].revents & POLLIN) == 0) continue;
    alignas(inotify_event) std::array<char, 4'096> events{};
    while (read(notify_, events.data(), events.size()) > 0) {}
    WatchFolders();
    changed_();
  }
}

}  // namespace gpusched::daemon
