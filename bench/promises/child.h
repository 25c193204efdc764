// Other programs: run to their end, or talked to line by line and killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gpusched/status.h"

namespace gpusched::bench {

// A program of this build, beside the running one.
std::string ProgramPath(const std::string& name);

// A running program; killed when this goes. Not thread-safe, and the thread that called Start must
// live as long (the kernel ties the child's life to it).
class Child {
 public:
  // Its standard error goes where ours goes, or to its standard output.
  enum class Errors { kOurs, kWithOutput };
  static Result<std::unique_ptr<Child>> Start(std::vector<std::string> arguments,
                                              Errors errors = Errors::kOurs);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The next line of its output, without the newline.
  Result<std::string> ReadLine(std::chrono::milliseconds within);
  // Everything up to its end.
  Result<std::string> ReadAll(std::chrono::milliseconds within);
  Status WriteLine(const std::string& line);
  void Kill();
  pid_t pid() const { return pid_; }
  // Its exit status, or 128 + the signal that ended it.
  int Wait();

 private:
  Child() = default;
  // Reads what there is; false at the end of the output. An error after `deadline`.
  Result<bool> Fill(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  int input_ = -1, output_ = -1;
  std::string buffer_;
};

struct Ran {
  int exit_status = 0;
  std::string output;  // standard output and standard error
};
Result<Ran> Run(std::vector<std::string> arguments, std::chrono::seconds within);

}  // namespace gpusched::bench
