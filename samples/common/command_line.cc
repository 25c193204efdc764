// Options in a list, looked up by name.
#include "common/command_line.h"

#include <gpusched/units.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace samples {
namespace {

// A run of longer than a day is a typing error, as is a job of more than an hour.
constexpr double kMostSeconds = 86'400;
constexpr gpusched::Duration kMostTime = std::chrono::hours(1);

}  // namespace

CommandLine::CommandLine(std::string program, std::string summary, CommonOptions& common)
    : program_(std::move(program)), summary_(std::move(summary)) {
  Add("--endpoint", "unix:/path or host:port; default: GPUSCHED_ENDPOINT", common.endpoint);
  Add("--device", "uuid, index or auto (auto)", common.device);
  Add("--seconds", "how long to measure (10)", common.seconds, kMostSeconds);
  Add("--smallest", "jobs as small as they come, for devices that are slow", common.smallest);
  Add("--json", "print one JSON object instead of text", common.json);
}

void CommandLine::Add(const std::string& name, const std::string& meaning, bool& flag) {
  options_.push_back({.name = name, .meaning = meaning, .values = {}, .flag = &flag, .take = {}});
}

void CommandLine::Add(const std::string& name, const std::string& meaning,
                      const std::string& values, std::function<bool(const std::string&)> take) {
  options_.push_back({.name = name, .meaning = meaning, .values = values, .take = std::move(take)});
}

void CommandLine::Add(const std::string& name, const std::string& meaning, std::string& text) {
  Add(name, meaning, "a text", [&text](const std::string& value) {
    text = value;
    return true;
  });
}

void CommandLine::Add(const std::string& name, const std::string& meaning, double& number,
                      double most) {
  char values[64];
  std::snprintf(values, sizeof values, "a number above 0, at most %.0f", most);
  Add(name, meaning, values, [&number, most](const std::string& value) {
    char* end = nullptr;
    number = std::strtod(value.c_str(), &end);
    return !value.empty() && *end == '\0' && number > 0 && number <= most;
  });
}

void CommandLine::Add(const std::string& name, const std::string& meaning,
                      gpusched::Duration& duration) {
  const char* const values = "a time above 0, at most 1h, as 1.5ms";
  Add(name, meaning, values, [&duration](const std::string& value) {
    const auto parsed = gpusched::ParseDuration(value);
    if (parsed) duration = *parsed;
    return parsed && *parsed > gpusched::Duration::zero() && *parsed <= kMostTime;
  });
}

std::optional<int> CommandLine::Parse(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--help") {
    std::fputs(Usage().c_str(), stdout);
    return 0;
  }
  const std::optional<std::string> fault = FirstFault(argc, argv);
  if (!fault) return std::nullopt;
  return Wrong(*fault);
}

int CommandLine::Wrong(const std::string& fault) const {
  std::fprintf(stderr, "%s: %s\n%s", program_.c_str(), fault.c_str(), Usage().c_str());
  return 2;
}

std::optional<std::string> CommandLine::FirstFault(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto option =
        std::find_if(options_.begin(), options_.end(),
                     [&name](const Option& candidate) { return candidate.name == name; });
    if (option == options_.end()) return "'" + name + "' is no option";
    if (option->flag != nullptr) {
      *option->flag = true;
      continue;
    }
    if (++i == argc) return name + " wants a value: " + option->values;
    if (!option->take(argv[i])) {
      return "'" + std::string(argv[i]) + "' is no value of " + name + ": " + option->values;
    }
  }
  return std::nullopt;
}

std::string CommandLine::Usage() const {
  std::string text = program_ + " [OPTION]...: " + summary_ + "\n";
  for (const Option& option : options_) {
    std::string words = "  " + option.name + (option.flag != nullptr ? "" : " VALUE");
    words.resize(std::max<std::size_t>(words.size() + 2, 22), ' ');
    text += words + option.meaning + "\n";
  }
  return text +
         "Exit status: 0, 1 if something failed or a result was wrong, 2 for a wrong option\n";
}

}  // namespace samples
