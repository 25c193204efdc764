// One line that says how far a run is: rewritten in place on a terminal, seldom elsewhere.
#pragma once

#include <string>

namespace gpusched::bench {

class ProgressLine {
 public:
  ProgressLine();
  // About once a second.
  void Show(const std::string& text);
  // The next thing printed starts on a line of its own.
  void Done();

 private:
  bool terminal_;
  int shown_ = 0;
  std::size_t width_ = 0;
};

}  // namespace gpusched::bench
