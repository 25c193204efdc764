// A file with a given content, gone at the end of a test.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace gpusched::sim {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    char name[] = "/tmp/gpusched-sim-XXXXXX";
    const int fd = mkstemp(name);
    path_ = name;
    if (fd >= 0) close(fd);
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace gpusched::sim
