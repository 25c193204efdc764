// A scenario's head, its device, and the checks over all of its sessions.
#include "sim/scenario.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/priority_class.h"
#include "gpusched/reasons.h"
#include "sim/named_scenarios.h"
#include "sim/source_parser.h"
#include "sim/yaml_map.h"

namespace gpusched::sim {
namespace {

constexpr Duration kLongest = std::chrono::hours(24 * 30);
// Of one scenario: a fleet's largest host has thousands.
constexpr std::size_t kMostSessions = 10'000;
// A scenario is written by people.
constexpr std::uintmax_t kLargestFile = 4 * 1024 * 1024;
// Chains of a training step are longer than what the daemon takes as one job; see remarks.
constexpr std::uint32_t kLongestChain = 65'536;

void ReadDevice(const YAML::Node& node, Scenario& scenario, const std::string& folder,
                Complaints& complaints) {
  YamlMap map(node, "the device", complaints);
  const std::string costs = map.Text("costs", "default");
  if (costs == "zero") {
    scenario.costs = {.launch_gap = Duration(0),
                      .chunk = Duration(0),
                      .session_switch = Duration(0),
                      .noise_ppb = 0,
                      .outlier_ppb = 0,
                      .outlier_factor = 1,
                      .copy_bandwidth = 0};
  } else if (costs != "default") {
    const std::string path =
        std::filesystem::path(costs).is_absolute() ? costs : folder + "/" + costs;
    Result<device::Costs> loaded = device::LoadCosts(path);
    if (loaded.ok()) {
      scenario.costs = *loaded;
    } else {
      complaints.Add(map.line(), "costs: " + loaded.status().message());
    }
  }
  scenario.memory = map.Bytes("memory", scenario.memory);
  core::DeviceTraits& traits = scenario.traits;
  const core::Limits limits;
  traits.preemption_bound =
      map.Time("preemption_bound", traits.preemption_bound, limits.least_preemption_bound,
               limits.greatest_preemption_bound);
  traits.shortest_useful_chunk = map.Time("shortest_useful_chunk", traits.shortest_useful_chunk,
                                          Duration(1), std::chrono::seconds(1));
  traits.priority_classes = static_cast<std::uint32_t>(
      map.Integer("priority_classes", traits.priority_classes, 1, core::kEachPriorityItsOwn));
  traits.can_interrupt = map.Flag("can_interrupt", traits.can_interrupt);
  scenario.limits.commands_in_flight = static_cast<std::uint32_t>(
      map.Integer("commands_in_flight", scenario.limits.commands_in_flight, 1, 4'096));
  map.RefuseTheRest();
}

Share ReadShare(const YAML::Node& node, Share share, Complaints& complaints) {
  YamlMap map(node, "a share", complaints);
  share.weight = static_cast<std::int32_t>(map.Integer("weight", share.weight, 1, 10'000));
  share.min = map.Decimal("min", kWholeDevice, share.min, 0, kWholeDevice);
  share.max = map.Decimal("max", kWholeDevice, share.max, 1, kWholeDevice);
  share.strict = map.Flag("strict", share.strict);
  share.priority = static_cast<std::int32_t>(map.Integer("priority", share.priority, -128, 127));
  if (share.min > share.max) map.Wrong("min", "is more than max");
  if (share.strict && share.min == 0) map.Wrong("strict", "needs a min above 0");
  map.RefuseTheRest();
  return share;
}

Share ReadShareWithTarget(YamlMap& map, const std::string& share_key, const std::string& target_key,
                          Complaints& complaints) {
  Share share;
  if (const YAML::Node node = map.Child(share_key); node.IsDefined()) {
    share = ReadShare(node, share, complaints);
  }
  share.latency_target = map.Time(target_key, Duration(0), Duration(1'000), std::chrono::hours(24));
  return share;
}

void ReadSession(const YAML::Node& node, const std::string& folder, Scenario& scenario,
                 Complaints& complaints) {
  YamlMap map(node, "a session", complaints);
  SessionSpec spec;
  spec.name = map.Text("name", "");
  if (spec.name.empty()) complaints.Add(map.line(), "a session needs a 'name'");
  spec.share = ReadShareWithTarget(map, "share", "target", complaints);
  const bool has_real_time = map.Has("real_time_share") || map.Has("real_time_target");
  const Share real_time =
      ReadShareWithTarget(map, "real_time_share", "real_time_target", complaints);
  spec.memory = map.Bytes("memory", 0);
  spec.queues = static_cast<std::uint32_t>(map.Integer("queues", 1, 1, 64));
  spec.skip_if_late = map.Flag("skip_if_late", false);
  const auto count = static_cast<std::size_t>(map.Integer("count", 1, 1, kMostSessions));
  const YAML::Node source = map.Child("source");
  map.RefuseTheRest();
  if (!source.IsDefined()) {
    complaints.Add(map.line(), "the session has no 'source' of work");
    return;
  }
  SourceParser parser(folder, complaints, scenario.remarks);
  const std::vector<ParsedSource> sources = parser.Parse(source);
  for (std::size_t i = 0; i < count; ++i) {
    for (const ParsedSource& parsed : sources) {
      SessionSpec session = spec;
      if (!parsed.name.empty()) session.name += "." + parsed.name;
      if (count > 1) session.name += "." + std::to_string(i + 1);
      if (parsed.real_time && has_real_time) session.share = real_time;
      if (parsed.queues > session.queues) session.queues = parsed.queues;
      session.source = parsed.source;
      scenario.sessions.push_back(std::move(session));
      if (scenario.sessions.size() > kMostSessions) {
        complaints.Add(map.line(), "more than " + std::to_string(kMostSessions) + " sessions");
        return;
      }
    }
  }
}

// "107.5 %".
std::string Percent(Rate rate) {
  const std::int64_t tenths = rate / (kWholeDevice / 1'000);
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
  return text + " %";
}

void CheckTogether(const Scenario& scenario, int line, Complaints& complaints) {
  std::set<std::string> names;
  Rate min = 0;
  std::uint64_t memory = 0;
  for (const SessionSpec& session : scenario.sessions) {
    if (!names.insert(session.name).second) {
      complaints.Add(session.source.line, "the name '" + session.name + "' is there twice");
    }
    min += session.share.min;
    if (session.memory > scenario.memory || memory > scenario.memory - session.memory) {
      complaints.Add(session.source.line, "the memory of the sessions up to '" + session.name +
                                              "' is more than the " + FormatBytes(scenario.memory) +
                                              " of the device");
      return;
    }
    memory += session.memory;
  }
  if (min > kWholeDevice) {
    complaints.Add(line, "the sessions' min together are " + Percent(min) +
                             " of the device; at most 100 % can be promised");
  }
}

}  // namespace

Recipe LaunchesOf(Duration work, Duration longest, bool cuttable) {
  constexpr Duration kBlock = std::chrono::microseconds(10);
  Recipe recipe;
  while (work > Duration(0)) {
    const Duration part = std::min(work, longest);
    work -= part;
    const std::uint64_t blocks =
        static_cast<std::uint64_t>(std::max<std::int64_t>(1, part / kBlock));
    // Blocks take equal time, so all launches are known by one key.
    recipe.push_back(LaunchOf(part, blocks, 1, cuttable));
  }
  return recipe;
}

Result<Scenario> ParseScenario(const std::string& text, const std::string& name,
                               const std::string& folder) {
  Complaints complaints(name);
  Scenario scenario;
  scenario.name = name;
  scenario.limits.operations_per_job = kLongestChain;
  scenario.limits.estimates_per_session = kLongestChain;
  const auto failure = [&] {
    return Status(StatusCode::kInvalidArgument, reason::kBadConfiguration, complaints.Text());
  };
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root || root.IsNull()) {
      complaints.Add(1, "the file is empty");
      return failure();
    }
    YamlMap map(root, "a scenario", complaints);
    scenario.duration =
        map.Time("duration", scenario.duration, std::chrono::milliseconds(1), kLongest);
    scenario.warm_up = map.Time("warm_up", scenario.warm_up, Duration(0), kLongest);
    scenario.drain = map.Time("drain", scenario.drain, Duration(0), kLongest);
    if (scenario.warm_up >= scenario.duration) {
      complaints.Add(map.line(), "warm_up must be shorter than duration");
    }
    if (const YAML::Node node = map.Child("device"); node.IsDefined()) {
      ReadDevice(node, scenario, folder, complaints);
    }
    const YAML::Node sessions = map.Child("sessions");
    map.RefuseTheRest();
    if (!sessions.IsDefined() || !sessions.IsSequence() || sessions.size() == 0) {
      complaints.Add(map.line(), "a scenario needs a list 'sessions' with at least one");
      return failure();
    }
    for (const YAML::Node& node : sessions) ReadSession(node, folder, scenario, complaints);
    CheckTogether(scenario, sessions.Mark().line + 1, complaints);
  } catch (const YAML::Exception& broken) {
    complaints.Add(broken.mark.line + 1, broken.msg);
  }
  if (!complaints.empty()) return failure();
  return scenario;
}

Result<Scenario> LoadScenario(const std::string& name_or_path) {
  for (const NamedScenario& named : kNamedScenarios) {
    if (named.name != name_or_path) continue;
    Result<Scenario> scenario =
        ParseScenario(std::string(named.text), std::string(named.name) + ".yaml", ".");
    if (scenario.ok()) scenario->name = named.name;
    return scenario;
  }
  std::error_code error;
  if (!std::filesystem::is_regular_file(name_or_path, error)) {
    std::string names;
    for (const std::string& name : NamedScenarios()) names += (names.empty() ? "" : ", ") + name;
    return WrongAt(name_or_path, 0,
                   "there is no such file and no scenario of that name; named ones are " + names);
  }
  if (std::filesystem::file_size(name_or_path, error) > kLargestFile) {
    return WrongAt(name_or_path, 0, "is larger than 4 MiB; a scenario is written by people");
  }
  std::ifstream file(name_or_path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return WrongAt(name_or_path, 0, "cannot be read; is it empty? check its permissions");
  const std::string folder = std::filesystem::path(name_or_path).parent_path().string();
  return ParseScenario(text.str(), name_or_path, folder.empty() ? "." : folder);
}

std::vector<std::string> NamedScenarios() {
  std::vector<std::string> names;
  for (const NamedScenario& named : kNamedScenarios) names.emplace_back(named.name);
  return names;
}

void ScaleLoad(Scenario& scenario, std::int64_t load_ppb) {
  const auto scaled = [load_ppb](Duration gap) {
    return Duration(static_cast<std::int64_t>(Wide128{gap.count()} * kOrdinaryScale / load_ppb));
  };
  for (SessionSpec& session : scenario.sessions) {
    SourceSpec& source = session.source;
    source.gap = scaled(source.gap);
    source.stretch_ppb =
        static_cast<std::int64_t>(Wide128{source.stretch_ppb} * kOrdinaryScale / load_ppb);
    if (!source.windows) continue;
    auto windows = std::make_shared<std::vector<RateWindow>>(*source.windows);
    for (RateWindow& window : *windows) window.mean_gap = scaled(window.mean_gap);
    source.windows = std::move(windows);
  }
}

}  // namespace gpusched::sim
