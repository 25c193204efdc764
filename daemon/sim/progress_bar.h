// A bar on the terminal while a long run goes on; nothing where the output is no terminal.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace gpusched::sim {

class ProgressBar {
 public:
  explicit ProgressBar(bool wanted) : shown_(wanted && isatty(STDERR_FILENO) != 0) {}
  ~ProgressBar() {
    if (last_ >= 0) std::fprintf(stderr, "\r\x1b[K");
  }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Show(int per_mille) {
    const int percent = per_mille / 10;
    if (!shown_ || percent == last_) return;
    last_ = percent;
    constexpr int kWidth = 40;
    const int full = percent * kWidth / 100;
    std::fprintf(stderr, "\r[%s%s] %3d %%",
                 std::string(static_cast<std::size_t>(full), '#').c_str(),
                 std::string(static_cast<std::size_t>(kWidth - full), ' ').c_str(), percent);
    std::fflush(stderr);
  }

 private:
  const bool shown_;
  int last_ = -1;
};

}  // namespace gpusched::sim
