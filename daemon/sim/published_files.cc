// The JSON files: mixes of tasks, and what others measured.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "sim/loaders.h"

namespace gpusched::sim {
namespace {

constexpr std::int64_t kBillion = 1'000'000'000;
// Of one file: the largest here has a tenth of it.
constexpr std::uintmax_t kLargestFile = 16 * 1024 * 1024;

// JSON is YAML. Errors carry the line.
Result<YAML::Node> Load(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return WrongAt(path, 0, "there is no such file");
  }
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kLargestFile) return WrongAt(path, 0, "larger than 16 MiB");
  try {
    YAML::Node root = YAML::LoadFile(path);
    if (!root || root.IsNull()) return WrongAt(path, 1, "the file is empty");
    if (!root.IsMap()) return WrongAt(path, 1, "is no JSON object");
    return root;
  } catch (const YAML::Exception& broken) {
    return WrongAt(path, static_cast<std::uint64_t>(std::max(broken.mark.line, 0) + 1), broken.msg);
  }
}

Status Wrong(const std::string& path, const YAML::Node& node, const std::string& what) {
  return WrongAt(path, static_cast<std::uint64_t>(node.Mark().line + 1), what);
}

Result<std::string> Text(const std::string& path, const YAML::Node& map, const std::string& key) {
  const YAML::Node value = map[key];
  if (!value || !value.IsScalar() || value.Scalar().empty()) {
    return Wrong(path, map, "lacks '" + key + "'");
  }
  return value.Scalar();
}

// Times `scale`, in [1, greatest].
Result<std::int64_t> Number(const std::string& path, const YAML::Node& map, const std::string& key,
                            std::int64_t scale, std::int64_t greatest) {
  const Result<std::string> text = Text(path, map, key);
  if (!text.ok()) return text.status();
  const std::optional<std::int64_t> value = ParseDecimal(*text, scale);
  if (!value || *value < 1 || *value > greatest) {
    return Wrong(path, map[key],
                 "'" + key + "' is '" + text->substr(0, 40) + "', not a number above 0 that fits");
  }
  return *value;
}

Result<DisbTask> ReadTask(const std::string& path, const YAML::Node& node) {
  if (!node.IsMap()) return Wrong(path, node, "a task must be an object");
  DisbTask task;
  Result<std::string> id = Text(path, node, "id");
  if (!id.ok()) return id.status();
  task.name = *std::move(id);
  task.real_time = task.name.ends_with("_rt");
  if (!node["client"] || !node["client"].IsMap()) return Wrong(path, node, "lacks 'client'");
  Result<std::string> model = Text(path, node["client"], "model_name");
  if (!model.ok()) return model.status();
  task.model = *std::move(model);
  if (!node["load"] || !node["load"].IsMap()) return Wrong(path, node, "lacks 'load'");
  const YAML::Node load = node["load"];
  const Result<std::string> type = Text(path, load, "type");
  if (!type.ok()) return type.status();
  if (*type == "continuous") return task;
  if (*type != "periodic" && *type != "poisson") {
    return Wrong(path, load,
                 "unknown load '" + *type + "'; known are periodic, poisson and continuous");
  }
  task.load = *type == "poisson" ? DisbTask::Load::kPoisson : DisbTask::Load::kPeriodic;
  const Result<std::int64_t> frequency =
      Number(path, load, "frequency", kBillion, kBillion * 100'000);
  if (!frequency.ok()) return frequency.status();
  task.gap = Duration(static_cast<std::int64_t>(Wide128{kBillion} * kBillion / *frequency));
  return task;
}

Result<std::vector<DisbTask>> ReadDisb(const std::string& path) {
  const Result<YAML::Node> root = Load(path);
  if (!root.ok()) return root.status();
  const YAML::Node list = (*root)["tasks"];
  if (!list || !list.IsSequence() || list.size() == 0) {
    return Wrong(path, *root, "lacks a list 'tasks'");
  }
  std::vector<DisbTask> tasks;
  std::set<std::string> names;
  for (const YAML::Node& node : list) {
    Result<DisbTask> task = ReadTask(path, node);
    if (!task.ok()) return task.status();
    if (!names.insert(task->name).second) {
      return Wrong(path, node, "repeats the task '" + task->name + "'");
    }
    tasks.push_back(*std::move(task));
  }
  return tasks;
}

Result<std::vector<DisbResult>> ReadDisbResults(const std::string& path) {
  const Result<YAML::Node> root = Load(path);
  if (!root.ok()) return root.status();
  const YAML::Node results = (*root)["results"];
  if (!results || !results.IsMap()) return Wrong(path, *root, "lacks 'results'");
  std::vector<DisbResult> all;
  for (const auto& mix : results) {
    for (const YAML::Node& row : mix.second) {
      const Result<std::string> client = Text(path, row, "client");
      if (!client.ok()) return client.status();
      const Result<std::int64_t> latency =
          Number(path, row, "avgTotalLatency(us)", 1'000, kBillion * 1'000);
      if (!latency.ok()) return latency.status();
      const Result<std::int64_t> alone =
          Number(path, row, "standAloneTotalLatency(us)", 1'000, kBillion * 1'000);
      if (!alone.ok()) return alone.status();
      const Result<std::int64_t> rate =
          Number(path, row, "avgThroughput(req/s)", kBillion, kBillion * 1'000'000);
      if (!rate.ok()) return rate.status();
      all.push_back({.framework_and_mix = mix.first.Scalar(),
                     .client = *client,
                     .latency = Duration(*latency),
                     .alone = Duration(*alone),
                     .throughput_ppb = *rate});
    }
  }
  if (all.empty()) return Wrong(path, results, "has no result");
  return all;
}

Result<XSchedFigures> ReadXSched(const std::string& path) {
  const Result<YAML::Node> root = Load(path);
  if (!root.ok()) return root.status();
  constexpr std::int64_t kMilli = 1'000'000, kMicro = 1'000;
  XSchedFigures figures;
  const YAML::Node latencies = (*root)["xsched_fig9_policies"]["fp_latency_ms"];
  const YAML::Node levels = (*root)["xsched_fig11_preempt_levels"]["preempt_latency_us"];
  if (!latencies || !latencies.IsMap() || !levels || !levels.IsMap()) {
    return Wrong(path, *root, "lacks fp_latency_ms or preempt_latency_us");
  }
  for (const auto& device : latencies) {
    XSchedFigures::Latency row;
    row.device = device.first.Scalar();
    struct Field {
      const char *of, *percentile;
      Duration* to;
    };
    for (const Field& field :
         {Field{"isolated", "p50", &row.isolated_p50}, Field{"isolated", "p99", &row.isolated_p99},
          Field{"native_coexec", "p99", &row.native_p99},
          Field{"xsched_hpf", "p99", &row.scheduled_p99}}) {
      const Result<std::int64_t> value =
          Number(path, device.second[field.of], field.percentile, kMilli, kBillion * 100);
      if (!value.ok()) return value.status();
      *field.to = Duration(*value);
    }
    figures.latencies.push_back(std::move(row));
  }
  for (const auto& [name, to] :
       {std::pair{"level1", &figures.level1}, std::pair{"level2", &figures.level2}}) {
    if (!levels[name]) return Wrong(path, levels, std::string("lacks '") + name + "'");
    for (const auto& kernel : levels[name]) {
      const std::optional<std::int64_t> us = ParseDecimal(kernel.first.Scalar(), kMicro);
      if (!us || *us < 1) return Wrong(path, kernel.first, "is no kernel time");
      const Result<std::int64_t> p50 = Number(path, kernel.second, "p50", kMicro, kBillion);
      if (!p50.ok()) return p50.status();
      const Result<std::int64_t> p99 = Number(path, kernel.second, "p99", kMicro, kBillion);
      if (!p99.ok()) return p99.status();
      to->push_back({.kernel = Duration(*us), .p50 = Duration(*p50), .p99 = Duration(*p99)});
    }
  }
  return figures;
}

// A shape that no reader looked for ends here: yaml-cpp throws where a value is missing.
template <typename T>
Result<T> Guarded(const std::string& path, Result<T> (*read)(const std::string&)) {
  try {
    return read(path);
  } catch (const YAML::Exception& broken) {
    return WrongAt(path, static_cast<std::uint64_t>(std::max(broken.mark.line, 0) + 1), broken.msg);
  }
}

}  // namespace

Result<std::vector<DisbTask>> LoadDisb(const std::string& path) { return Guarded(path, ReadDisb); }
Result<std::vector<DisbResult>> LoadDisbResults(const std::string& path) {
  return Guarded(path, ReadDisbResults);
}
Result<XSchedFigures> LoadXSched(const std::string& path) { return Guarded(path, ReadXSched); }

}  // namespace gpusched::sim
