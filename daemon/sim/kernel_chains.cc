// Kernel chains: what a request or a training step is made of, launch by launch.
#include <algorithm>
#include <limits>
#include <map>

#include "sim/loaders.h"

namespace gpusched::sim {
namespace {

constexpr std::string_view kOrionHeader = "Name,Profile,Memory_footprint,SM_usage,Duration";
constexpr std::string_view kReefHeader =
    "idx,kernel,grid_x,grid_y,grid_z,block_x,block_y,block_z,static_smem_bytes,"
    "latency_us_full_gpu,latency_us_1block_per_cu";
constexpr std::string_view kHtaHeader =
    "step,kind,name,stream,launch_us,start_us,dur_us,grid_x,grid_y,grid_z,block_x,block_y,block_z,"
    "regs_per_thread,smem_bytes,blocks_per_sm,warps_per_sm,est_occupancy_pct,bytes";

constexpr std::int64_t kMicro = 1'000;  // of a nanosecond's thousandth
// No chain we know of comes near; a job may have fewer operations still.
constexpr std::size_t kMostOperations = 1'000'000;
// No kernel of these recordings runs for a second.
constexpr std::int64_t kLongestNs = 60'000'000'000;
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 40;

// Chains differ, and so do a chain's places: equal keys mean equal kernels of equal shape.
std::uint64_t KeyOf(const std::string& path, std::size_t place) {
  std::uint64_t key = 0xcbf29ce484222325u;
  for (const char c : path) key = (key ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return key ^ (place + 1);
}

using Chain = std::vector<RecordedOperation>;

Status ReadOrion(CsvFile& file, bool whole, const std::string& path, Chain& chain) {
  for (;;) {
    const Result<bool> more = file.Next();
    if (!more.ok()) return more.status();
    if (!*more) return Status::Ok();
    const Result<std::int64_t> blocks = file.Number(3, 1, 0, kMostBlocks);
    if (!blocks.ok()) return blocks.status();
    const Result<std::int64_t> ns = file.Number(4, 1, 1, kLongestNs);
    if (!ns.ok()) return ns.status();
    chain.push_back(
        {.work =
             LaunchOf(Duration(*ns), static_cast<std::uint64_t>(std::max<std::int64_t>(1, *blocks)),
                      KeyOf(path, chain.size()), !whole),
         .stream = 0,
         .released = Duration(0),
         .step = 0});
    if (chain.size() > kMostOperations) return file.Wrong("too many operations");
  }
}

Result<std::int64_t> Grid(const CsvFile& file, std::size_t first_column) {
  std::int64_t blocks = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    const Result<std::int64_t> size =
        file.Number(first_column + i, 1, 1, std::numeric_limits<std::int32_t>::max());
    if (!size.ok()) return size;
    if (blocks > kMostBlocks / *size) return file.Wrong("the grid has too many blocks");
    blocks *= *size;
  }
  return blocks;
}

Status ReadReef(CsvFile& file, bool whole, const std::string& path, Chain& chain) {
  for (;;) {
    const Result<bool> more = file.Next();
    if (!more.ok()) return more.status();
    if (!*more) return Status::Ok();
    const Result<std::int64_t> index = file.Number(0, 1, 0, kMostOperations);
    if (!index.ok()) return index.status();
    if (*index != static_cast<std::int64_t>(chain.size())) {
      return file.Wrong("idx is " + file[0] + " where " + std::to_string(chain.size()) +
                        " is next: a line is missing, doubled or out of order");
    }
    const Result<std::int64_t> blocks = Grid(file, 2);
    if (!blocks.ok()) return blocks.status();
    const Result<std::int64_t> ns = file.Number(9, kMicro, 1, kLongestNs);
    if (!ns.ok()) return ns.status();
    chain.push_back({.work = LaunchOf(Duration(*ns), static_cast<std::uint64_t>(*blocks),
                                      KeyOf(path, chain.size()), !whole),
                     .stream = 0,
                     .released = Duration(0),
                     .step = 0});
  }
}

// A row's operation, without stream and times.
Result<Work> ReadHtaWork(const CsvFile& file, bool whole, std::uint64_t key) {
  const Result<std::int64_t> ns = file.Number(6, kMicro, 1, kLongestNs);
  if (!ns.ok()) return ns.status();
  const std::string& kind = file[1];
  if (kind == "kernel") {
    const Result<std::int64_t> blocks = Grid(file, 7);
    if (!blocks.ok()) return blocks.status();
    return LaunchOf(Duration(*ns), static_cast<std::uint64_t>(*blocks), key, !whole);
  }
  if (kind != "memcpy" && kind != "memset") {
    return file.Wrong("unknown kind '" + kind.substr(0, 40) +
                      "'; known are kernel, memcpy and memset");
  }
  const Result<std::int64_t> bytes = file.Number(18, 1, 1, std::int64_t{1} << 40);
  if (!bytes.ok()) return bytes.status();
  Work work = LaunchOf(Duration(*ns), static_cast<std::uint64_t>(*bytes), key, !whole);
  using Kind = core::Operation::Kind;
  work.operation.kind = kind == "memset"                            ? Kind::kFill
                        : file[2].find("DtoH") != std::string::npos ? Kind::kCopyOut
                                                                    : Kind::kCopyIn;
  return work;
}

Status ReadHta(CsvFile& file, bool whole, const std::string& path, Chain& chain) {
  std::map<std::string, std::uint32_t> streams, steps;
  std::map<std::uint32_t, Duration> origin;      // by step
  std::map<std::uint64_t, Duration> last_start;  // by step and stream
  for (;;) {
    const Result<bool> more = file.Next();
    if (!more.ok()) return more.status();
    if (!*more) break;
    Result<Work> work = ReadHtaWork(file, whole, KeyOf(path, chain.size()));
    if (!work.ok()) return work.status();
    const Result<std::int64_t> launch = file.Number(4, kMicro, -kLongestNs, kLongestNs);
    if (!launch.ok()) return launch.status();
    const Result<std::int64_t> start = file.Number(5, kMicro, -kLongestNs, kLongestNs);
    if (!start.ok()) return start.status();
    const std::uint32_t step =
        steps.try_emplace(file[0], static_cast<std::uint32_t>(steps.size())).first->second;
    const std::uint32_t stream =
        streams.try_emplace(file[3], static_cast<std::uint32_t>(streams.size())).first->second;
    if (stream >= 64) return file.Wrong("more than 64 streams; a session has 64 queues");
    const auto [last, first_row] =
        last_start.try_emplace(std::uint64_t{step} << 32 | stream, Duration(*start));
    if (!first_row && Duration(*start) < last->second) {
      return file.Wrong("starts before the line before it of the same stream");
    }
    last->second = Duration(*start);
    const auto [first, unused] = origin.try_emplace(step, Duration(*launch));
    first->second = std::min(first->second, Duration(*launch));
    chain.push_back(
        {.work = *std::move(work), .stream = stream, .released = Duration(*launch), .step = step});
    if (chain.size() > kMostOperations) return file.Wrong("too many operations");
  }
  for (RecordedOperation& operation : chain) operation.released -= origin[operation.step];
  return Status::Ok();
}

}  // namespace

Result<std::vector<RecordedOperation>> LoadChain(const std::string& path, bool whole) {
  struct Reader {
    std::string_view header;
    Status (*read)(CsvFile&, bool, const std::string&, Chain&);
  };
  static constexpr Reader kReaders[] = {
      {kOrionHeader, ReadOrion}, {kReefHeader, ReadReef}, {kHtaHeader, ReadHta}};
  const Result<std::string> header = CsvFile::HeaderOf(path);
  if (!header.ok()) return header.status();
  for (const Reader& reader : kReaders) {
    if (*header != reader.header) continue;
    Result<CsvFile> file = CsvFile::Open(path, *header);
    if (!file.ok()) return file.status();
    Chain chain;
    if (Status status = reader.read(*file, whole, path, chain); !status.ok()) return status;
    if (chain.empty()) return WrongAt(path, 2, "the chain has no operation");
    return chain;
  }
  return WrongAt(path, 1,
                 "no kernel chain: the first line is '" + header->substr(0, 80) +
                     "'; known are those of Orion, REEF and HTA");
}

Recipe RecipeOf(const std::vector<RecordedOperation>& chain, std::uint32_t step) {
  Recipe recipe;
  for (const RecordedOperation& operation : chain) {
    if (operation.step == step) recipe.push_back(operation.work);
  }
  return recipe;
}

}  // namespace gpusched::sim
