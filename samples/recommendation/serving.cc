// The job of a request: user in, gather, first layer in pieces, second layer, top-k, answer out.
#include "serving.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/layers.h"

namespace recommendation {

using gpusched::Dim3;
using gpusched::Duration;
using gpusched::Job;
using gpusched::Result;
using gpusched::Status;

namespace {

// What a request looks at is a multiple of a block of the top-k, and of the rows of all others.
constexpr std::size_t kUnit = 1'024;
constexpr std::size_t kMostCandidates = 64 * kUnit;
// Devices want buffers inside buffers to begin at a multiple of 128 bytes.
constexpr std::size_t kScoresAt = 128;
constexpr std::uint32_t kRowsPerBlock = 4, kScoresPerBlock = 64, kGatherRows = 8;
constexpr std::uint32_t kCandidateSeed = 5;

}  // namespace

Best Request::best() const {
  Best best;
  std::memcpy(best.ids.data(), bytes.data(), sizeof best.ids);
  std::memcpy(best.scores.data(), bytes.data() + kScoresAt, sizeof best.scores);
  return best;
}

Result<Serving::Memory> Serving::Allocate(gpusched::Session& session, const Catalogue& catalogue) {
  constexpr std::size_t kRow = kMostCandidates * sizeof(float);
  const std::size_t sizes[] = {catalogue.items.size() * sizeof(float),
                               kRow,
                               (kEmbedding + 1) * kHidden * sizeof(float),
                               (kHidden + 1) * sizeof(float),
                               kEmbedding * sizeof(float),
                               kRow * kEmbedding,
                               kRow * kHidden,
                               kRow,
                               sizeof(Request::bytes)};
  std::vector<gpusched::Buffer> made;
  for (const std::size_t size : sizes) {
    Result<gpusched::Buffer> buffer = session.Allocate(size);
    if (!buffer.ok()) return buffer.status();
    made.push_back(*std::move(buffer));
  }
  return Memory{std::move(made[0]), std::move(made[1]), std::move(made[2]),
                std::move(made[3]), std::move(made[4]), std::move(made[5]),
                std::move(made[6]), std::move(made[7]), std::move(made[8])};
}

Result<std::unique_ptr<Serving>> Serving::Open(gpusched::Session& session,
                                               const Catalogue& catalogue, const Layers& layers,
                                               const samples::Size& size) {
  auto module = session.LoadModule({.source = kernels::kLayers, .cuda_source = kernels::kLayers});
  if (!module.ok()) return module.status();
  Result<Memory> memory = Allocate(session, catalogue);
  if (!memory.ok()) return memory.status();
  std::unique_ptr<Serving> serving(
      new Serving(session, catalogue, layers, *std::move(module), *std::move(memory)));
  const Memory& to = serving->memory_;
  const auto ids = RandomIds(kMostCandidates, catalogue.item_count(), kCandidateSeed);
  Status status = samples::RunOnce(session, Job()
                                                .Write(to.items, catalogue.items)
                                                .Write(to.ids, ids)
                                                .Write(to.hidden, layers.hidden)
                                                .Write(to.score, layers.score));
  if (!status.ok()) return status;

  Request request{.user = catalogue.user(0)};
  const auto candidates = samples::FindAmount(
      size, kUnit, kMostCandidates, [&](std::size_t amount) -> Result<Duration> {
        if (Status prepared = serving->Prepare(amount, size.launches()); !prepared.ok())
          return prepared;
        return samples::TimeAlone([&] { return serving->Submit(request); });
      });
  if (!candidates.ok()) return candidates.status();
  status = serving->Prepare(*candidates, size.launches());
  if (!status.ok()) return status;
  serving->candidates_.assign(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(*candidates));
  return serving;
}

Status Serving::Prepare(std::size_t candidates, std::size_t launches) {
  const Memory& m = memory_;
  const auto blocks = [](std::size_t rows, std::size_t each) {
    return static_cast<std::uint32_t>(rows / each);
  };
  Job job;
  std::array<float, kEmbedding> nobody{};
  job.Write(m.user, nobody);
  job.Launch(module_.kernel("gather"), Dim3{1, blocks(candidates, kGatherRows)},
             Dim3{kEmbedding, kGatherRows}, m.items, m.ids, m.user, m.x);
  const std::size_t all = candidates / kRowsPerBlock;
  for (std::size_t piece = 0; piece < launches; ++piece) {
    const std::size_t from = all * piece / launches, to = all * (piece + 1) / launches;
    if (from == to) continue;
    job.Launch(module_.kernel("hidden_layer"), Dim3{1, static_cast<std::uint32_t>(to - from)},
               Dim3{kHidden, kRowsPerBlock}, m.x, m.hidden,
               static_cast<std::uint32_t>(from * kRowsPerBlock), m.h);
  }
  job.Launch(module_.kernel("score_layer"), Dim3{blocks(candidates, kScoresPerBlock)},
             Dim3{kScoresPerBlock}, m.h, m.score, m.scores);
  job.Launch(module_.kernel("top_of_block"), Dim3{1}, Dim3{kTopBlock}, m.scores, m.ids,
             blocks(candidates, kTopBlock), m.best, m.best.At(kScoresAt));
  read_ = static_cast<std::uint32_t>(job.size());
  Request nowhere;
  job.Read(m.best, nowhere.bytes);
  auto made = session_.RegisterTemplate(job);
  if (!made.ok()) return made.status();
  job_.emplace(*std::move(made));
  return Status::Ok();
}

Result<gpusched::Submission> Serving::Submit(Request& request,
                                             const gpusched::SubmitOptions& options) {
  return session_.Submit(
      *job_, gpusched::Changes().Write(0, request.user).Read(read_, request.bytes.data()), options);
}

bool Serving::IsRight(const Request& request) const {
  return AreBest(request.best(), candidates_, catalogue_, layers_, request.user);
}

}  // namespace recommendation
