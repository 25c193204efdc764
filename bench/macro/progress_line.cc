// Writes to standard output only, with a flush, so that a pipe shows it too.
#include "macro/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace gpusched::bench {
namespace {

// Where lines stay, one in so many is enough to see that it lives.
constexpr int kSeldom = 5;

}  // namespace

ProgressLine::ProgressLine() : terminal_(isatty(STDOUT_FILENO) != 0) {}

void ProgressLine::Show(const std::string& text) {
  if (!terminal_) {
    if (shown_++ % kSeldom == 0) std::printf("  %s\n", text.c_str());
    std::fflush(stdout);
    return;
  }
  width_ = std::max(width_, text.size());
  std::printf("\r  %-*s", static_cast<int>(width_), text.c_str());
  std::fflush(stdout);
}

void ProgressLine::Done() {
  if (terminal_ && width_ > 0) std::printf("\r%*s\r", static_cast<int>(width_ + 2), "");
  std::fflush(stdout);
  width_ = 0;
  shown_ = 0;
}

}  // namespace gpusched::bench
