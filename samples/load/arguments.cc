// The load program's command line.
#include "arguments.h"

#include <gpusched/units.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

namespace load {
namespace {

using gpusched::Result;
using gpusched::Status;

// Each takes the option's value and says whether it is one.
using Setter = std::function<bool(const std::string&)>;

template <typename Number>
Setter Into(Number& number) {
  return [&number](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    number = static_cast<Number>(value);
    return !text.empty() && *end == '\0' && static_cast<double>(number) == value;
  };
}

Setter Into(std::string& to) {
  return [&to](const std::string& text) {
    to = text;
    return true;
  };
}

Setter Into(gpusched::Duration& duration) {
  return [&duration](const std::string& text) {
    const auto parsed = gpusched::ParseDuration(text);
    if (parsed) duration = *parsed;
    return parsed.has_value();
  };
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
  const std::map<std::string, Setter> options = {
      {"--endpoint", Into(arguments.endpoint)},
      {"--device", Into(arguments.session.device)},
      {"--name", Into(arguments.session.name)},
      {"--weight", Into(share.weight)},
      {"--min", Into(share.min)},
      {"--max", Into(share.max)},
      {"--priority", Into(share.priority)},
      {"--target", Into(share.latency_target)},
      {"--kernel-time", Into(arguments.kernel_time)},
      {"--blocks", Into(arguments.blocks)},
      {"--rate", Into(arguments.rate)},
      {"--outstanding", Into(arguments.outstanding)},
      {"--seconds", Into(seconds)},
      {"--seed", Into(arguments.seed)},
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
    if (++i == argc) return wrong(name + " wants a value");
    if (!option->second(argv[i])) return wrong("'" + std::string(argv[i]) + "' is no " + name);
  }
  if (arguments.blocks == 0) return wrong("--blocks is at least 1");
  if (arguments.outstanding == 0) return wrong("--outstanding is at least 1");
  if (!(arguments.rate >= 0)) return wrong("--rate is not negative");
  if (!(seconds > 0 && seconds < 1e6)) return wrong("--seconds lies between 0 and a million");
  arguments.length = gpusched::Duration(static_cast<std::int64_t>(seconds * 1e9));
  return arguments;
}

}  // namespace load
