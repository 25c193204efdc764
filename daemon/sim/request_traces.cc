// Recorded requests, arrival families and training steps.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "sim/loaders.h"

namespace gpusched::sim {
namespace {

constexpr std::string_view kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";
constexpr std::string_view kMooncakeHeader = "timestamp_ms,input_length,output_length,n_hash_ids";
constexpr std::string_view kServeGenHeader =
    "client,window_start_s,rate_per_s,cv,pattern,shape,scale";
constexpr std::string_view kStepsHeader = ",worker,gpu,time,batch_time_norm";

// Far above any context window; a request beyond it is a broken file.
constexpr std::int64_t kMostTokens = 10'000'000;
// Mooncake's stamps are rounded to this.
constexpr Duration kBatch = std::chrono::seconds(3);
// No batch of the recording has more than a few dozen.
constexpr std::size_t kLargestBatch = 100'000;
// Of a table that is kept in memory.
constexpr std::size_t kMostRows = 1'000'000;

// Days since 1970-01-01 of a date in the Gregorian calendar; counts years from March.
std::int64_t DaysOf(std::int64_t year, std::int64_t month, std::int64_t day) {
  if (month <= 2) --year;
  const std::int64_t shifted = (month + 9) % 12;
  const std::int64_t era = year / 400, of_era = year % 400;
  const std::int64_t of_year = (153 * shifted + 2) / 5 + day - 1;
  return era * 146'097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719'468;
}

// "2023-11-16 18:15:46.6805900".
std::optional<Duration> ParseStamp(const std::string& text) {
  constexpr std::string_view kShape = "dddd-dd-dd dd:dd:dd.";
  if (text.size() <= kShape.size() || text.size() > kShape.size() + 9) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    const char expected = i < kShape.size() ? kShape[i] : 'd';
    if (expected == 'd' ? !digit : text[i] != expected) return std::nullopt;
  }
  const auto number = [&](std::size_t from, std::size_t count) {
    std::int64_t value = 0;
    for (std::size_t i = from; i < from + count; ++i) value = value * 10 + (text[i] - '0');
    return value;
  };
  const std::int64_t month = number(5, 2), day = number(8, 2), hour = number(11, 2);
  const std::int64_t minute = number(14, 2), second = number(17, 2);
  if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60) {
    return std::nullopt;
  }
  std::int64_t ns = number(20, text.size() - 20);
  for (std::size_t i = text.size() - 20; i < 9; ++i) ns *= 10;
  const std::int64_t seconds =
      DaysOf(number(0, 4), month, day) * 86'400 + hour * 3'600 + minute * 60 + second;
  if (seconds < 0 || seconds > INT64_MAX / 2'000'000'000) return std::nullopt;
  return Duration(seconds * 1'000'000'000 + ns);
}

}  // namespace

Duration LanguageModelWork(std::int64_t context_tokens, std::int64_t generated_tokens) {
  return std::chrono::milliseconds(2) + std::chrono::microseconds(20) * context_tokens +
         std::chrono::microseconds(500) * generated_tokens;
}

Result<RequestTrace> RequestTrace::Open(const std::string& path) {
  const Result<std::string> header = CsvFile::HeaderOf(path);
  if (!header.ok()) return header.status();
  if (*header != kAzureHeader && *header != kMooncakeHeader) {
    return WrongAt(path, 1,
                   "no trace of requests: the first line is '" + header->substr(0, 80) +
                       "'; known are '" + std::string(kAzureHeader) + "' and '" +
                       std::string(kMooncakeHeader) + "'");
  }
  Result<CsvFile> file = CsvFile::Open(path, *header);
  if (!file.ok()) return file.status();
  return RequestTrace(*header == kAzureHeader ? Kind::kAzure : Kind::kMooncake, *std::move(file));
}

Result<bool> RequestTrace::ReadRow(Request& row) {
  Result<bool> more = file_.Next();
  if (!more.ok() || !*more) return more;
  Duration stamp{0};
  if (kind_ == Kind::kAzure) {
    const std::optional<Duration> parsed = ParseStamp(file_[0]);
    if (!parsed) {
      return file_.Wrong("'" + file_[0].substr(0, 40) +
                         "' is no time as in 2023-11-16 18:15:46.6805900");
    }
    stamp = *parsed;
  } else {
    const Result<std::int64_t> milliseconds =
        file_.Number(0, 1, 0, std::chrono::milliseconds(std::chrono::hours(24 * 366)).count());
    if (!milliseconds.ok()) return milliseconds.status();
    stamp = std::chrono::milliseconds(*milliseconds);
  }
  const Result<std::int64_t> context = file_.Number(1, 1, 0, kMostTokens);
  if (!context.ok()) return context.status();
  const Result<std::int64_t> generated = file_.Number(2, 1, 0, kMostTokens);
  if (!generated.ok()) return generated.status();
  if (!origin_) origin_ = stamp;
  row.at = stamp - *origin_;
  if (row.at < last_) return file_.Wrong("is earlier than the line before; sort the file by time");
  last_ = row.at;
  row.work = LanguageModelWork(*context, *generated);
  return true;
}

// All requests of one stamp; the first of the next stamp is kept for later.
Status RequestTrace::ReadBatch() {
  if (following_) batch_.push_back(*following_);
  following_.reset();
  for (;;) {
    Request row;
    const Result<bool> more = ReadRow(row);
    if (!more.ok()) return more.status();
    if (!*more) break;
    if (!batch_.empty() && row.at != batch_.front().at) {
      following_ = row;
      break;
    }
    batch_.push_back(row);
    if (batch_.size() > kLargestBatch) return file_.Wrong("one more of the same time: too many");
  }
  const auto count = static_cast<std::int64_t>(batch_.size());
  // Stamps are off by a millisecond here and there; the next batch never begins before this ends.
  const Duration room = following_ ? std::min(kBatch, following_->at - batch_.front().at) : kBatch;
  for (std::int64_t i = 0; i < count; ++i) {
    batch_[static_cast<std::size_t>(i)].at += room * i / count;
  }
  return Status::Ok();
}

Result<std::optional<Request>> RequestTrace::Next() {
  if (kind_ == Kind::kAzure) {
    Request row;
    const Result<bool> more = ReadRow(row);
    if (!more.ok()) return more.status();
    return *more ? std::optional<Request>(row) : std::optional<Request>();
  }
  if (batch_.empty()) {
    if (Status status = ReadBatch(); !status.ok()) return status;
  }
  if (batch_.empty()) return std::optional<Request>();
  const std::optional<Request> next = batch_.front();
  batch_.pop_front();
  return next;
}

Result<TraceTotals> TotalsOf(const std::string& path) {
  Result<RequestTrace> trace = RequestTrace::Open(path);
  if (!trace.ok()) return trace.status();
  TraceTotals totals;
  for (;;) {
    const Result<std::optional<Request>> next = trace->Next();
    if (!next.ok()) return next.status();
    if (!next->has_value()) break;
    ++totals.requests;
    totals.span = (*next)->at;
    totals.work = Plus(totals.work, (*next)->work);
  }
  if (totals.requests < 2) return WrongAt(path, 2, "a trace needs at least two requests");
  // As much again as one gap on average: the trace could be repeated after it.
  totals.span += totals.span / static_cast<std::int64_t>(totals.requests - 1);
  if (totals.span == Duration(0)) return WrongAt(path, 2, "all requests come at the same time");
  return totals;
}

Result<std::vector<TenantClient>> LoadServeGen(const std::string& path) {
  Result<CsvFile> file = CsvFile::Open(path, kServeGenHeader);
  if (!file.ok()) return file.status();
  constexpr std::int64_t kBillion = 1'000'000'000;
  std::vector<TenantClient> clients;
  std::int64_t last_client = -1, last_window = -1;
  for (std::size_t rows = 0;; ++rows) {
    const Result<bool> more = file->Next();
    if (!more.ok()) return more.status();
    if (!*more) break;
    if (rows == kMostRows) return file->Wrong("too many rows");
    const Result<std::int64_t> client = file->Number(0, 1, 0, 1'000'000);
    if (!client.ok()) return client.status();
    const Result<std::int64_t> from = file->Number(1, 1, 0, 366 * 86'400);
    if (!from.ok()) return from.status();
    const Result<std::int64_t> rate = file->Number(2, kBillion, 1'000, 1'000'000 * kBillion);
    if (!rate.ok()) return rate.status();
    const Result<std::int64_t> shape = file->Number(5, kOne, kOne / 100, 1'000 * kOne);
    if (!shape.ok()) return shape.status();
    const std::string& family = (*file)[4];
    if (family != "Gamma" && family != "Weibull") {
      return file->Wrong("unknown pattern '" + family.substr(0, 40) +
                         "'; known are Gamma and Weibull");
    }
    if (family == "Weibull" && *shape < kOne / 10) {
      return file->Wrong("a Weibull shape below 0.1 has no mean that fits");
    }
    if (*client < last_client || (*client == last_client && *from < last_window)) {
      return file->Wrong("is out of order; sort by client and window");
    }
    if (*client == last_client && *from == last_window) {
      return file->Wrong("repeats the window of the line before");
    }
    if (*client != last_client) clients.push_back({.name = std::to_string(*client), .windows = {}});
    last_client = *client;
    last_window = *from;
    clients.back().windows.push_back(
        {.from = std::chrono::seconds(*from),
         .mean_gap = Duration(static_cast<std::int64_t>(Wide128{kBillion} * kBillion / *rate)),
         .family = family == "Gamma" ? Family::kGamma : Family::kWeibull,
         .shape = *shape});
  }
  if (clients.empty()) return WrongAt(path, 2, "the file has no client");
  return clients;
}

Result<std::vector<std::vector<std::int64_t>>> LoadSteps(const std::string& path) {
  Result<CsvFile> file = CsvFile::Open(path, kStepsHeader);
  if (!file.ok()) return file.status();
  constexpr std::int64_t kMostWorkers = 10'000, kLongestStep = 1'000'000'000;
  std::vector<std::vector<std::int64_t>> workers;
  std::map<std::int64_t, std::int64_t> last_time;  // by worker
  for (std::int64_t rows = 0;; ++rows) {
    const Result<bool> more = file->Next();
    if (!more.ok()) return more.status();
    if (!*more) break;
    if (static_cast<std::size_t>(rows) == kMostRows) return file->Wrong("too many rows");
    const Result<std::int64_t> worker = file->Number(1, 1, 0, kMostWorkers);
    if (!worker.ok()) return worker.status();
    const Result<std::int64_t> time = file->Number(3, 1, 0, INT64_MAX);
    if (!time.ok()) return time.status();
    const Result<std::int64_t> step = file->Number(4, 1, 1, kLongestStep);
    if (!step.ok()) return step.status();
    const auto [last, first_row] = last_time.try_emplace(*worker, *time);
    if (!first_row) {
      if (*time < last->second) return file->Wrong("is earlier than this worker's line before");
      last->second = *time;
    }
    if (static_cast<std::size_t>(*worker) >= workers.size()) {
      workers.resize(static_cast<std::size_t>(*worker) + 1);
    }
    workers[static_cast<std::size_t>(*worker)].push_back(*step);
  }
  std::erase_if(workers, [](const auto& steps) { return steps.empty(); });
  if (workers.empty()) return WrongAt(path, 2, "the file has no step");
  return workers;
}

std::optional<std::string> WorkloadsFolder() {
  const char* named = std::getenv("GPUSCHED_WORKLOADS");
  const std::string folder = named != nullptr && *named != '\0' ? named : "../shared/workloads";
  std::error_code error;
  if (!std::filesystem::is_directory(folder + "/requests", error)) return std::nullopt;
  return folder;
}

}  // namespace gpusched::sim
