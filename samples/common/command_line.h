// A sample's command line: --name VALUE, or --name alone for what is either so or not.
#pragma once

#include <gpusched/client.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace samples {

// What every sample takes.
struct CommonOptions {
  std::string endpoint;  // "": the environment's GPUSCHED_ENDPOINT
  std::string device = "auto";
  double seconds = 10;  // of the measured run
  bool smallest = false;
  bool json = false;

  gpusched::Duration length() const {
    return gpusched::Duration(static_cast<std::int64_t>(seconds * 1e9));
  }
};

class CommandLine {
 public:
  // `summary` says in a line what the program does.
  CommandLine(std::string program, std::string summary, CommonOptions& common);

  void Add(const std::string& name, const std::string& meaning, bool& flag);
  void Add(const std::string& name, const std::string& meaning, std::string& text);
  // Above 0, at most `most`.
  void Add(const std::string& name, const std::string& meaning, double& number, double most);
  // Above 0, at most an hour.
  void Add(const std::string& name, const std::string& meaning, gpusched::Duration& duration);
  // `take` says whether the text is a value of this option; `values`, in words, which are.
  void Add(const std::string& name, const std::string& meaning, const std::string& values,
           std::function<bool(const std::string&)> take);

  // The exit status where the program is to end at once: after --help, or after saying what is
  // wrong.
  std::optional<int> Parse(int argc, char** argv);
  // Says what is wrong with the options together; the exit status.
  int Wrong(const std::string& fault) const;

 private:
  struct Option {
    std::string name, meaning, values;
    bool* flag = nullptr;
    std::function<bool(const std::string&)> take;
  };
  std::optional<std::string> FirstFault(int argc, char** argv);
  std::string Usage() const;

  std::string program_, summary_;
  std::vector<Option> options_;
};

}  // namespace samples
