// Every key once, with the values it takes.
#include "config_keys.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <limits>

#include "core/limits.h"
#include "gpusched/units.h"

namespace gpusched::daemon {
namespace {

using YAML::Node;

std::string ReadText(const Node& value, std::string& to) {
  if (!value.IsScalar()) return "must be a single value";
  to = value.Scalar();
  return "";
}

std::string ReadBool(const Node& value, bool& to) {
  if (value.IsScalar() && (value.Scalar() == "true" || value.Scalar() == "false")) {
    to = value.Scalar() == "true";
    return "";
  }
  return "must be true or false";
}

template <typename T>
std::string ReadInteger(const Node& value, std::int64_t least, std::int64_t greatest, T& to) {
  const std::string text = value.IsScalar() ? value.Scalar() : "";
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < least ||
      number > greatest) {
    return "must be a whole number from " + std::to_string(least) + " to " +
           std::to_string(greatest);
  }
  to = static_cast<T>(number);
  return "";
}

std::string ReadBytes(const Node& value, std::uint64_t& to) {
  const auto bytes = value.IsScalar() ? ParseBytes(value.Scalar()) : std::nullopt;
  if (!bytes) return "must be a number of bytes, as 64MiB or 5GB";
  to = *bytes;
  return "";
}

std::string ReadDuration(const Node& value, Duration least, Duration greatest, Duration& to) {
  const auto duration = value.IsScalar() ? ParseDuration(value.Scalar()) : std::nullopt;
  if (!duration || *duration < least || *duration > greatest) {
    return "must be a time from " + FormatDuration(least) + " to " + FormatDuration(greatest) +
           ", as 1.5ms or 10s";
  }
  to = *duration;
  return "";
}

// "0.5" or "50%".
std::string ReadFraction(const Node& value, Rate& to) {
  const std::string text = value.IsScalar() ? value.Scalar() : "";
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (rest == "%") number /= 100;
  if (error != std::errc{} || (!rest.empty() && rest != "%") || !(number >= 0 && number <= 1)) {
    return "must be a fraction from 0 to 1, as 0.25 or 25%";
  }
  to = static_cast<Rate>(number * static_cast<double>(kWholeDevice) + 0.5);
  return "";
}

std::string ReadEndpoints(const Node& value, std::vector<std::string>& to) {
  to.clear();
  if (value.IsScalar()) to.push_back(value.Scalar());
  if (value.IsSequence()) {
    for (const Node& item : value) {
      if (!item.IsScalar()) return "must be a list of endpoints, as unix:/path or 127.0.0.1:7000";
      to.push_back(item.Scalar());
    }
  }
  return to.empty() ? "must name at least one endpoint, as unix:/path or 127.0.0.1:7000" : "";
}

std::string Joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

std::string Fraction(Rate rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%g",
                static_cast<double>(rate) / static_cast<double>(kWholeDevice));
  return text;
}

// Exact: two values are the same if and only if their texts are.
std::string Bytes(std::uint64_t bytes) {
  const std::string text = FormatBytes(bytes);
  return ParseBytes(text) == bytes ? text : std::to_string(bytes);
}

constexpr core::Limits kCore;
constexpr Duration kLongestDrain = std::chrono::hours(1);
constexpr std::int64_t kMostSpareUnits = 1'024;      // no host has more processors
constexpr std::int64_t kLeastWindowBytes = 1 << 20;  // one piece of data

constexpr std::array kKeys{
    ConfigKey{"listen.endpoints", false, "unix:/path or host:port, one or a list",
              "where services connect",
              [](const Node& v, Config& c) { return ReadEndpoints(v, c.listen.endpoints); },
              [](const Config& c) { return Joined(c.listen.endpoints); }},
    ConfigKey{"listen.insecure", false, "true or false",
              "allow TCP beyond this machine without TLS",
              [](const Node& v, Config& c) { return ReadBool(v, c.listen.insecure); },
              [](const Config& c) { return std::string(c.listen.insecure ? "true" : "false"); }},
    ConfigKey{"admin.endpoint", false, "unix:/path", "where operators connect",
              [](const Node& v, Config& c) { return ReadText(v, c.admin.endpoint); },
              [](const Config& c) { return c.admin.endpoint; }},
    ConfigKey{"admin.group", false, "a group's name",
              "who may use the admin socket beside its owner",
              [](const Node& v, Config& c) { return ReadText(v, c.admin.group); },
              [](const Config& c) { return c.admin.group; }},
    ConfigKey{"device.kind", false, "auto, cuda, opencl, virtual",
              "what computes; auto takes no virtual one",
              [](const Node& v, Config& c) { return ReadText(v, c.device.kind); },
              [](const Config& c) { return c.device.kind; }},
    ConfigKey{"device.select", false, "uuids or parts of names, comma-separated",
              "which devices to open, in this order",
              [](const Node& v, Config& c) { return ReadText(v, c.device.select); },
              [](const Config& c) { return c.device.select; }},
    ConfigKey{"device.count", false, "1 to 8", "how many devices to open",
              [](const Node& v, Config& c) { return ReadInteger(v, 1, 8, c.device.count); },
              [](const Config& c) { return std::to_string(c.device.count); }},
    ConfigKey{"device.costs", false, "a file", "what things cost on the virtual device",
              [](const Node& v, Config& c) { return ReadText(v, c.device.costs); },
              [](const Config& c) { return c.device.costs; }},
    ConfigKey{"device.memory", false, "bytes; 0: the device's own",
              "what the sessions of one device may have together",
              [](const Node& v, Config& c) { return ReadBytes(v, c.device.memory); },
              [](const Config& c) { return Bytes(c.device.memory); }},
    ConfigKey{"device.preemption_bound", true, "100us to 1s",
              "the longest a higher arrival may wait for work in flight",
              [](const Node& v, Config& c) {
                return ReadDuration(v, kCore.least_preemption_bound,
                                    kCore.greatest_preemption_bound, c.device.preemption_bound);
              },
              [](const Config& c) { return FormatDuration(c.device.preemption_bound); }},
    ConfigKey{"device.cache_dir", false, "a folder", "where compilers keep what they built",
              [](const Node& v, Config& c) { return ReadText(v, c.device.cache_dir); },
              [](const Config& c) { return c.device.cache_dir; }},
    ConfigKey{"device.spare_units", false, "0 to 1024",
              "compute units of a CPU device that are left to the host",
              [](const Node& v, Config& c) {
                return ReadInteger(v, 0, kMostSpareUnits, c.device.spare_units);
              },
              [](const Config& c) { return std::to_string(c.device.spare_units); }},
    ConfigKey{
        "device.priority_streams", false, "true or false",
        "CUDA: a higher session's work starts beside what runs, not behind it",
        [](const Node& v, Config& c) { return ReadBool(v, c.device.priority_streams); },
        [](const Config& c) { return std::string(c.device.priority_streams ? "true" : "false"); }},
    ConfigKey{"device.in_flight", false, "1 to 64",
              "commands that may be on a device at once, however short",
              [](const Node& v, Config& c) {
                return ReadInteger(v, 1, kCore.commands_in_flight, c.device.in_flight);
              },
              [](const Config& c) { return std::to_string(c.device.in_flight); }},
    ConfigKey{
        "sessions.max_priority", true, "-128 to 127", "the highest priority a session may declare",
        [](const Node& v, Config& c) { return ReadInteger(v, -128, 127, c.sessions.max_priority); },
        [](const Config& c) { return std::to_string(c.sessions.max_priority); }},
    ConfigKey{"sessions.max_share", true, "a fraction",
              "the greatest min a session may declare, and the greatest max it is granted",
              [](const Node& v, Config& c) {
                std::string fault = ReadFraction(v, c.sessions.max_share);
                return fault.empty() && c.sessions.max_share == 0 ? "must be above 0" : fault;
              },
              [](const Config& c) { return Fraction(c.sessions.max_share); }},
    ConfigKey{"sessions.memory", true, "bytes", "the quota of a session that asks for none",
              [](const Node& v, Config& c) { return ReadBytes(v, c.sessions.default_memory); },
              [](const Config& c) { return Bytes(c.sessions.default_memory); }},
    ConfigKey{"sessions.max_memory", true, "bytes; 0: what the device has",
              "the greatest quota a session may ask for",
              [](const Node& v, Config& c) { return ReadBytes(v, c.sessions.max_memory); },
              [](const Config& c) { return Bytes(c.sessions.max_memory); }},
    ConfigKey{"sessions.window_jobs", true, "1 to 1024", "outstanding jobs of a session",
              [](const Node& v, Config& c) {
                return ReadInteger(v, 1, kCore.jobs_per_session, c.sessions.window_jobs);
              },
              [](const Config& c) { return std::to_string(c.sessions.window_jobs); }},
    ConfigKey{"sessions.window_bytes", true, "1MiB and more",
              "bytes a session may have sent ahead of the jobs that copy them in",
              [](const Node& v, Config& c) {
                std::string fault = ReadBytes(v, c.sessions.window_bytes);
                return fault.empty() && c.sessions.window_bytes < kLeastWindowBytes
                           ? "must be at least 1MiB"
                           : fault;
              },
              [](const Config& c) { return Bytes(c.sessions.window_bytes); }},
    ConfigKey{"sessions.max_sessions", true, "1 to 16384", "open sessions, over all devices",
              [](const Node& v, Config& c) {
                return ReadInteger(v, 1, kCore.sessions, c.sessions.max_sessions);
              },
              [](const Config& c) { return std::to_string(c.sessions.max_sessions); }},
    ConfigKey{"drain_timeout", true, "0 to 1h", "how long a stopping daemon lets sessions finish",
              [](const Node& v, Config& c) {
                return ReadDuration(v, Duration::zero(), kLongestDrain, c.drain_timeout);
              },
              [](const Config& c) { return FormatDuration(c.drain_timeout); }},
    ConfigKey{"log.level", true, "debug, info, warning, error", "how much is logged",
              [](const Node& v, Config& c) {
                std::string fault = ReadText(v, c.log.level);
                const bool known = c.log.level == "debug" || c.log.level == "info" ||
                                   c.log.level == "warning" || c.log.level == "error";
                return fault.empty() && !known ? "must be debug, info, warning or error" : fault;
              },
              [](const Config& c) { return c.log.level; }},
    ConfigKey{"log.file", false, "a file; empty: standard error", "where the log goes",
              [](const Node& v, Config& c) { return ReadText(v, c.log.file); },
              [](const Config& c) { return c.log.file; }},
};

}  // namespace

std::span<const ConfigKey> ConfigKeys() { return kKeys; }

}  // namespace gpusched::daemon
