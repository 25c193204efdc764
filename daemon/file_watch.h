// Watches one file and says when it may have changed: writes, renames and swapped symbolic links.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "gpusched/status.h"

namespace gpusched::daemon {

// Watches folders, not the file: an editor that writes a new file and renames it, and a mount that
// swaps a link among its path, leave the old file's watch behind. What changed is for the callee to
// find out.
class FileWatch {
 public:
  // `changed` runs on the watch's own thread.
  static Result<std::unique_ptr<FileWatch>> Start(const std::string& path,
                                                  std::function<void()> changed);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

 private:
  FileWatch(std::string path, std::function<void()> changed, int notify, int stop);
  void Run();
  void WatchFolders();

  const std::string path_;
  const std::function<void()> changed_;
  const int notify_;
  const int stop_;
  std::thread thread_;
};

}  // namespace gpusched::daemon
