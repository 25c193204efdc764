// The load program's command line.
#include "arguments.h"

#include <gpusched/units.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <type_traits>
#include <utility>

namespace load {
namespace {

using gpusched::Result;
using gpusched::Status;

struct Option {
  std::string values;  // in words
  // Says whether the text is one.
  std::function<bool(const std::string&)> take;
};

// More is a typing error.
constexpr gpusched::Duration kMostTime = std::chrono::hours(1);
constexpr double kMostSeconds = 86'400;

enum class Least { kIncluded, kExcluded };

template <typename Number>
Option Into(Number& number, Number least, Number most, Least itself = Least::kIncluded) {
  const bool included = itself == Least::kIncluded;
  char values[96];
  std::snprintf(values, sizeof values, "a %s %s %.15g, at most %.15g",
                std::is_integral_v<Number> ? "whole number," : "number,",
                included ? "at least" : "above", static_cast<double>(least),
                static_cast<double>(most));
  return {values, [&number, least, most, included](const std::string& text) {
            Number value{};
            const char* const end = text.data() + text.size();
            const auto [after, error] = std::from_chars(text.data(), end, value);
            if (error != std::errc() || after != end) return false;
            number = value;
            return (included ? value >= least : value > least) && value <= most;
          }};
}

Option Into(std::string& to) {
  return {"a text", [&to](const std::string& text) {
            to = text;
            return true;
          }};
}

// From `least` to an hour.
Option Into(gpusched::Duration& duration, gpusched::Duration least) {
  return {"a time, at least " + gpusched::FormatDuration(least) + ", at most 1h",
          [&duration, least](const std::string& text) {
            const auto parsed = gpusched::ParseDuration(text);
            if (parsed) duration = *parsed;
            return parsed && *parsed >= least && *parsed <= kMostTime;
          }};
}

}  // namespace

const char* Usage() {
  return "load [OPTION VALUE]...: runs launches of a given time on the virtual device\n"
         "  --endpoint WHERE    unix:/path or host:port; default: GPUSCHED_ENDPOINT\n"
         "  --device WHICH      uuid, index or auto\n"
         "  --name NAME --weight N --min FRACTION --max FRACTION --strict --priority N\n"
         "  --target TIME       latency target, as 20ms\n"
         "  --kernel-time TIME  of one request (2ms)\n"
         "  --blocks N          that it consists of (100)\n"
         "  --uncuttable        it cannot be preempted between blocks\n"
         "  --rate N            requests per second at random instants (Poisson), whatever "
         "happens;\n"
         "                      without it, --outstanding N (2) are kept waiting or running,\n"
         "                      as many as a session may have at most\n"
         "  --seconds N         how long (10)\n"
         "  --seed N            of the random instants (1)\n"
         "Exit status: 0, 1 if the daemon was lost or ended the session, 2 for a wrong option\n";
}

Result<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  gpusched::DeclaredShare& share = arguments.session.share;
  double seconds = 10;
  const std::map<std::string, bool*> flags = {{"--strict", &share.strict},
                                              {"--uncuttable", &arguments.uncuttable}};
  const std::map<std::string, Option> options = {
      {"--endpoint", Into(arguments.endpoint)},
      {"--device", Into(arguments.session.device)},
      {"--name", Into(arguments.session.name)},
      {"--weight", Into(share.weight, 1, 10'000)},
      {"--min", Into(share.min, 0.0, 1.0)},
      {"--max", Into(share.max, 0.0, 1.0, Least::kExcluded)},
      {"--priority", Into(share.priority, -128, 127)},
      {"--target", Into(share.latency_target, gpusched::Duration::zero())},
      {"--kernel-time", Into(arguments.kernel_time, std::chrono::microseconds(1))},
      {"--blocks", Into(arguments.blocks, 1u, 1'000'000u)},
      {"--rate", Into(arguments.rate, 0.0, 1e6, Least::kExcluded)},
      {"--outstanding", Into(arguments.outstanding, 1u, 1'000'000u)},
      {"--seconds", Into(seconds, 0.0, kMostSeconds, Least::kExcluded)},
      {"--seed", Into(arguments.seed, std::uint64_t{0}, std::uint64_t{UINT32_MAX})},
  };
  const auto wrong = [](const std::string& why) {
    return Status(gpusched::StatusCode::kInvalidArgument, "USAGE", why);
  };
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (const auto flag = flags.find(name); flag != flags.end()) {
      *flag->second = true;
      continue;
    }
    const auto option = options.find(name);
    if (option == options.end()) return wrong("'" + name + "' is no option");
    const std::string& values = option->second.values;
    if (++i == argc) return wrong(name + " wants a value: " + values);
    if (!option->second.take(argv[i])) {
      return wrong("'" + std::string(argv[i]) + "' is no value of " + name + ": " + values);
    }
  }
  if (arguments.kernel_time.count() < arguments.blocks) {
    return wrong("--kernel-time is less than a nanosecond for each of the --blocks");
  }
  arguments.length = gpusched::Duration(static_cast<std::int64_t>(seconds * 1e9));
  return arguments;
}

}  // namespace load
