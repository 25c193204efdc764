// One reader for each kind of source.
#include "sim/source_parser.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "sim/generated_workloads.h"

namespace gpusched::sim {
namespace {

constexpr Duration kLongestJob = std::chrono::hours(1);
constexpr Duration kLongestGap = std::chrono::hours(24);
constexpr std::int64_t kBillion = 1'000'000'000;
// A million requests a second: more is no workload but a typing error.
constexpr std::int64_t kHighestRate = 1'000'000 * kBillion;
// The same stand-in every time.
constexpr std::uint64_t kGeneratedSeed = 1;
constexpr std::size_t kGeneratedRequests = 2'000;

// Mean device time of a DISB model where no result names it.
constexpr Duration kUnknownModel = std::chrono::milliseconds(4);
// DISB's models as launches of this: what its papers' kernels mostly are below.
constexpr Duration kModelLaunch = std::chrono::microseconds(100);

const std::map<std::string, SourceSpec::Kind>& Kinds() {
  static const std::map<std::string, SourceSpec::Kind> kinds = {
      {"closed_loop", SourceSpec::Kind::kClosedLoop}, {"periodic", SourceSpec::Kind::kPeriodic},
      {"poisson", SourceSpec::Kind::kPoisson},        {"gamma", SourceSpec::Kind::kGamma},
      {"weibull", SourceSpec::Kind::kWeibull},        {"trace", SourceSpec::Kind::kTrace},
      {"replay", SourceSpec::Kind::kReplay},          {"steps", SourceSpec::Kind::kSteps},
      {"servegen", SourceSpec::Kind::kWindows},       {"disb", SourceSpec::Kind::kClosedLoop},
  };
  return kinds;
}

}  // namespace

// Beside the scenario, else in the workloads' folder.
std::optional<SourceParser::Located> SourceParser::Locate(YamlMap& map, const std::string& key) {
  const std::string name = map.Text(key, "");
  if (name.empty()) {
    complaints_.Add(map.line(), "the source needs '" + key + "'");
    return std::nullopt;
  }
  std::error_code error;
  const std::filesystem::path path(name);
  const std::string beside = path.is_absolute() ? name : folder_ + "/" + name;
  if (std::filesystem::exists(beside, error)) return Located{.path = beside};
  const std::optional<std::string> workloads = WorkloadsFolder();
  if (!workloads && !path.is_absolute()) return Located{.path = name, .generate = true};
  const std::string there = workloads ? *workloads + "/" + name : beside;
  if (std::filesystem::exists(there, error)) return Located{.path = there};
  map.Wrong(key, "names " + name + ", which is neither beside the scenario nor in " +
                     workloads.value_or("the workloads' folder"));
  return std::nullopt;
}

void SourceParser::SayGenerated(const std::string& instead_of) {
  const std::string remark = instead_of +
                             " is not there (no folder ../shared/workloads, and "
                             "GPUSCHED_WORKLOADS names none): generated, of the same shape";
  if (std::find(remarks_.begin(), remarks_.end(), remark) == remarks_.end()) {
    remarks_.push_back(remark);
  }
}

template <typename T>
bool SourceParser::Take(Result<T> result, T& to) {
  if (!result.ok()) {
    complaints_.AddWhole(result.status().message());
    return false;
  }
  to = *std::move(result);
  return true;
}

std::vector<ParsedSource> SourceParser::Parse(const YAML::Node& node) {
  YamlMap map(node, "a source", complaints_);
  ParsedSource parsed;
  SourceSpec& source = parsed.source;
  source.line = map.line();
  const std::string kind = map.Text("kind", "");
  const auto found = Kinds().find(kind);
  if (found == Kinds().end()) {
    std::string known;
    for (const auto& [name, unused] : Kinds()) known += (known.empty() ? "" : ", ") + name;
    complaints_.Add(map.line(), (kind.empty() ? "a source needs a 'kind'"
                                              : "unknown kind of source '" + kind + "'") +
                                    "; known are " + known);
    return {};
  }
  source.kind = found->second;
  source.cuttable = map.Flag("cuttable", true);
  source.cv_ppb = map.Decimal("cv", kBillion, 0, 0, kBillion * 3 / 10);
  std::vector<ParsedSource> several;
  if (kind == "disb") {
    several = ReadDisb(map, source);
    map.RefuseTheRest();
    return several;
  }
  switch (source.kind) {
    case SourceSpec::Kind::kClosedLoop:
      source.outstanding = static_cast<std::uint32_t>(map.Integer("outstanding", 1, 1, 1'024));
      source.think = map.Time("think", Duration(0), Duration(0), kLongestGap);
      ReadWork(map, source);
      break;
    case SourceSpec::Kind::kPeriodic:
      ReadRate(map, source);
      source.phase = map.Time("phase", Duration(-1), Duration(0), kLongestGap);
      ReadWork(map, source);
      break;
    case SourceSpec::Kind::kPoisson:
      ReadRate(map, source);
      ReadWork(map, source);
      break;
    case SourceSpec::Kind::kGamma:
    case SourceSpec::Kind::kWeibull:
      ReadRate(map, source);
      source.shape = map.Decimal("shape", kOne, kOne,
                                 source.kind == SourceSpec::Kind::kGamma ? kOne / 50 : kOne / 10,
                                 1'000 * kOne);
      ReadWork(map, source);
      break;
    case SourceSpec::Kind::kTrace: ReadTrace(map, source); break;
    case SourceSpec::Kind::kReplay: ReadReplay(map, parsed); break;
    case SourceSpec::Kind::kSteps: ReadSteps(map, source); break;
    case SourceSpec::Kind::kWindows:
      ReadWork(map, source);
      several = ReadServeGen(map, source);
      map.RefuseTheRest();
      return several;
  }
  map.RefuseTheRest();
  return {parsed};
}

// `work` in `launches` equal launches or in launches of `longest_launch`; or a `chain` of kernels.
void SourceParser::ReadWork(YamlMap& map, SourceSpec& source) {
  if (map.Has("chain")) {
    const std::optional<Located> file = Locate(map, "chain");
    if (!file) return;
    std::vector<RecordedOperation> chain;
    if (file->generate) {
      SayGenerated(file->path);
      chain = GeneratedChain(kGeneratedSeed, !source.cuttable);
    } else if (!Take(LoadChain(file->path, !source.cuttable), chain)) {
      return;
    }
    source.recipe = std::make_shared<const Recipe>(RecipeOf(chain));
    return;
  }
  const bool has_work = map.Has("work");
  const Duration work = map.Time("work", std::chrono::milliseconds(1), Duration(1), kLongestJob);
  if (!has_work) {
    complaints_.Add(map.line(), "the source needs 'work', the device time of a job, or a 'chain'");
    return;
  }
  source.longest_launch =
      map.Time("longest_launch", source.longest_launch, std::chrono::microseconds(1), kLongestJob);
  if (!map.Has("launches")) {
    if (work / source.longest_launch > 4'000) {
      map.Wrong("work", "makes more than 4,000 launches of longest_launch");
      return;
    }
    source.recipe =
        std::make_shared<const Recipe>(LaunchesOf(work, source.longest_launch, source.cuttable));
    return;
  }
  const std::int64_t launches = map.Integer("launches", 1, 1, 4'096);
  const Duration each = std::max(work / launches, Duration(1));
  auto recipe = std::make_shared<Recipe>();
  for (std::int64_t i = 0; i < launches; ++i) {
    recipe->push_back(LaunchesOf(each, each, source.cuttable).front());
  }
  source.recipe = std::move(recipe);
}

void SourceParser::ReadRate(YamlMap& map, SourceSpec& source) {
  const bool has_rate = map.Has("rate");
  const bool has_period = source.kind == SourceSpec::Kind::kPeriodic && map.Has("period");
  if (has_rate == has_period) {
    complaints_.Add(map.line(), source.kind == SourceSpec::Kind::kPeriodic
                                    ? "the source needs 'period' or 'rate', one of them"
                                    : "the source needs a 'rate', in jobs a second");
  }
  source.gap = std::chrono::seconds(1);
  if (has_period) {
    source.gap = map.Time("period", source.gap, std::chrono::microseconds(1), kLongestGap);
  }
  if (!has_rate) return;
  const std::int64_t rate = map.Decimal("rate", kBillion, kBillion, 1'000, kHighestRate);
  source.gap = Duration(static_cast<std::int64_t>(Wide128{kBillion} * kBillion / rate));
}

void SourceParser::ReadTrace(YamlMap& map, SourceSpec& source) {
  source.longest_launch =
      map.Time("longest_launch", source.longest_launch, std::chrono::microseconds(1), kLongestJob);
  const std::int64_t load = map.Decimal("load", kBillion, 0, kBillion / 10'000, 100 * kBillion);
  const std::optional<Located> file = Locate(map, "file");
  if (!file) return;
  TraceTotals totals;
  if (file->generate) {
    SayGenerated(file->path);
    auto generated = std::make_shared<std::vector<Request>>(
        GeneratedRequests(kGeneratedRequests, kGeneratedSeed));
    for (const Request& request : *generated) totals.work += request.work;
    totals.span = generated->back().at;
    source.generated = std::move(generated);
  } else {
    source.file = file->path;
    if (!Take(TotalsOf(file->path), totals)) return;
  }
  // Time is stretched or compressed so that work over span is the load; requests stay as they are.
  if (load == 0) return;
  const Wide128 stretch =
      Wide128{totals.work.count()} * kBillion / totals.span.count() * kOrdinaryScale / load;
  source.stretch_ppb = static_cast<std::int64_t>(std::clamp<Wide128>(stretch, 1, INT64_MAX / 4));
}

void SourceParser::ReadReplay(YamlMap& map, ParsedSource& parsed) {
  parsed.source.gap =
      map.Time("every", std::chrono::seconds(1), std::chrono::milliseconds(1), kLongestGap);
  const std::optional<Located> file = Locate(map, "file");
  if (!file) return;
  std::vector<RecordedOperation> recorded;
  if (file->generate) {
    SayGenerated(file->path);
    recorded = GeneratedChain(kGeneratedSeed, !parsed.source.cuttable);
  } else if (!Take(LoadChain(file->path, !parsed.source.cuttable), recorded)) {
    return;
  }
  for (const RecordedOperation& operation : recorded) {
    parsed.queues = std::max(parsed.queues, operation.stream + 1);
  }
  parsed.source.recorded =
      std::make_shared<const std::vector<RecordedOperation>>(std::move(recorded));
}

void SourceParser::ReadSteps(YamlMap& map, SourceSpec& source) {
  source.unit = map.Time("unit", std::chrono::milliseconds(1), std::chrono::microseconds(1),
                         std::chrono::seconds(1));
  source.longest_launch =
      map.Time("longest_launch", source.longest_launch, std::chrono::microseconds(1), kLongestJob);
  const auto worker = static_cast<std::size_t>(map.Integer("worker", 0, 0, 10'000));
  const std::optional<Located> file = Locate(map, "file");
  if (!file) return;
  std::vector<std::vector<std::int64_t>> workers;
  if (file->generate) {
    SayGenerated(file->path);
    workers = GeneratedSteps(kGeneratedSeed);
  } else if (!Take(LoadSteps(file->path), workers)) {
    return;
  }
  if (worker >= workers.size()) {
    complaints_.Add(map.line(), "there is no worker " + std::to_string(worker) + "; the last is " +
                                    std::to_string(workers.size() - 1));
    return;
  }
  source.steps = std::make_shared<const std::vector<std::int64_t>>(std::move(workers[worker]));
}

std::vector<ParsedSource> SourceParser::ReadServeGen(YamlMap& map, const SourceSpec& common) {
  const Duration from = map.Time("from", Duration(0), Duration(0), std::chrono::hours(24 * 366));
  const std::optional<Located> file = Locate(map, "file");
  if (!file) return {};
  std::vector<TenantClient> clients;
  if (file->generate) {
    SayGenerated(file->path);
    clients = GeneratedTenants(kGeneratedSeed);
  } else if (!Take(LoadServeGen(file->path), clients)) {
    return {};
  }
  std::vector<ParsedSource> sources;
  for (TenantClient& client : clients) {
    ParsedSource parsed{.name = client.name, .source = common};
    parsed.source.from = from;
    parsed.source.windows =
        std::make_shared<const std::vector<RateWindow>>(std::move(client.windows));
    sources.push_back(std::move(parsed));
  }
  return sources;
}

std::vector<ParsedSource> SourceParser::ReadDisb(YamlMap& map, const SourceSpec& common) {
  const std::optional<Located> file = Locate(map, "file");
  if (!file) return {};
  std::vector<DisbTask> tasks;
  std::vector<DisbResult> results;
  if (file->generate) {
    SayGenerated(file->path);
    tasks = GeneratedDisb();
  } else if (!Take(LoadDisb(file->path), tasks)) {
    return {};
  }
  if (map.Has("results")) {
    const std::optional<Located> published = Locate(map, "results");
    if (!published) return {};
    if (!published->generate && !Take(LoadDisbResults(published->path), results)) return {};
  }
  // A model's own time: the first framework that was measured alone with it. A client's name is its
  // model's short name and "_rt" or "_be".
  const auto time_of = [&results](const std::string& client) {
    const std::string model = client.substr(0, client.rfind('_'));
    for (const DisbResult& result : results) {
      if (result.client.starts_with(model + "_")) return result.alone;
    }
    return kUnknownModel;
  };
  std::vector<ParsedSource> sources;
  for (const DisbTask& task : tasks) {
    ParsedSource parsed{.name = task.name, .real_time = task.real_time, .source = common};
    SourceSpec& source = parsed.source;
    switch (task.load) {
      case DisbTask::Load::kPeriodic: source.kind = SourceSpec::Kind::kPeriodic; break;
      case DisbTask::Load::kPoisson: source.kind = SourceSpec::Kind::kPoisson; break;
      case DisbTask::Load::kClosedLoop: source.kind = SourceSpec::Kind::kClosedLoop; break;
    }
    source.gap = task.gap;
    source.recipe = std::make_shared<const Recipe>(
        LaunchesOf(time_of(task.name), kModelLaunch, source.cuttable));
    sources.push_back(std::move(parsed));
  }
  return sources;
}

}  // namespace gpusched::sim
