// A step: gather, both layers forward, the errors, both gradients in parts, both layers moved.
#include "update.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/layers.h"

namespace recommendation {

using gpusched::Dim3;
using gpusched::Duration;
using gpusched::Job;
using gpusched::Result;
using gpusched::Status;

namespace {

constexpr std::uint32_t kRowsPerPart = 64;  // of a gradient that one thread sums up
constexpr std::size_t kUnit = 256;
constexpr std::size_t kMostRows = 48 * 1'024;
constexpr std::uint32_t kRowsPerBlock = 4, kScoresPerBlock = 64, kGatherRows = 8, kStepBlock = 64;
constexpr std::size_t kLessons = 4;
constexpr float kRate = 0.5f;
constexpr std::uint32_t kStartSeed = 11, kTaughtSeed = 12, kBatchSeed = 100;
constexpr std::uint32_t kHiddenWeights = (kEmbedding + 1) * kHidden, kScoreWeights = kHidden + 1;

Result<std::vector<gpusched::Buffer>> AllocateAll(gpusched::Session& session,
                                                  const std::vector<std::size_t>& floats) {
  std::vector<gpusched::Buffer> made;
  for (const std::size_t count : floats) {
    Result<gpusched::Buffer> buffer = session.Allocate(count * sizeof(float));
    if (!buffer.ok()) return buffer.status();
    made.push_back(*std::move(buffer));
  }
  return made;
}

double MeanSquare(const std::vector<float>& errors) {
  double sum = 0;
  for (const float error : errors) sum += static_cast<double>(error) * error;
  return errors.empty() ? 0 : sum / static_cast<double>(errors.size());
}

}  // namespace

Result<Update::Memory> Update::Allocate(gpusched::Session& session, const Catalogue& catalogue) {
  constexpr std::size_t kParts = kMostRows / kRowsPerPart;
  auto made =
      AllocateAll(session, {catalogue.items.size(), catalogue.users.size(), kHiddenWeights,
                            kScoreWeights, kMostRows * kEmbedding, kMostRows * kHidden, kMostRows,
                            kMostRows, kParts * kHiddenWeights, kParts * kScoreWeights});
  if (!made.ok()) return made.status();
  std::vector<gpusched::Buffer>& m = *made;
  return Memory{std::move(m[0]), std::move(m[1]), std::move(m[2]), std::move(m[3]),
                std::move(m[4]), std::move(m[5]), std::move(m[6]), std::move(m[7]),
                std::move(m[8]), std::move(m[9])};
}

Result<std::vector<Update::Lesson>> Update::AllocateLessons(gpusched::Session& session) {
  std::vector<Lesson> lessons;
  for (std::size_t i = 0; i < kLessons; ++i) {
    auto made = AllocateAll(session, {kMostRows, kMostRows, kMostRows});
    if (!made.ok()) return made.status();
    lessons.push_back({std::move((*made)[0]), std::move((*made)[1]), std::move((*made)[2])});
  }
  return lessons;
}

Result<std::unique_ptr<Update>> Update::Open(gpusched::Session& session, const Catalogue& catalogue,
                                             const samples::Size& size) {
  auto module = session.LoadModule({.source = kernels::kLayers, .cuda_source = kernels::kLayers});
  if (!module.ok()) return module.status();
  Result<Memory> memory = Allocate(session, catalogue);
  if (!memory.ok()) return memory.status();
  Result<std::vector<Lesson>> lessons = AllocateLessons(session);
  if (!lessons.ok()) return lessons.status();
  std::unique_ptr<Update> update(
      new Update(session, catalogue, *std::move(module), *std::move(memory), *std::move(lessons)));
  const Layers start = RandomLayers(kStartSeed);
  if (Status status = update->Load(start); !status.ok()) return status;

  const auto rows =
      samples::FindAmount(size, kUnit, kMostRows, [&](std::size_t amount) -> Result<Duration> {
        if (Status prepared = update->Prepare(amount, size.launches()); !prepared.ok())
          return prepared;
        return samples::TimeAlone([&] { return update->Submit(); });
      });
  if (!rows.ok()) return rows.status();
  if (Status status = update->Prepare(*rows, size.launches()); !status.ok()) return status;
  if (Status status = update->CompareOneStep(start); !status.ok()) return status;
  return update;
}

// Everything that the number of rows does not change.
Status Update::Load(const Layers& start) {
  const Layers taught = RandomLayers(kTaughtSeed);
  Job job;
  job.Write(memory_.items, catalogue_.items).Write(memory_.users, catalogue_.users);
  for (std::size_t i = 0; i < kLessons; ++i) {
    batches_.push_back(
        RandomBatch(kMostRows, catalogue_, taught, kBatchSeed + 2 * static_cast<std::uint32_t>(i)));
    job.Write(lessons_[i].items, batches_[i].items)
        .Write(lessons_[i].users, batches_[i].users)
        .Write(lessons_[i].wanted, batches_[i].wanted);
  }
  job.Write(memory_.hidden, start.hidden).Write(memory_.score, start.score);
  return samples::RunOnce(session_, job);
}

Status Update::Prepare(std::size_t rows, std::size_t launches) {
  rows_ = rows;
  steps_.clear();
  submitted_ = 0;
  errors_.fill(std::vector<float>(rows, std::numeric_limits<float>::quiet_NaN()));
  for (const Lesson& lesson : lessons_) {
    Job job = Step(lesson, rows, launches);
    read_ = static_cast<std::uint32_t>(job.size());
    job.Read(memory_.error, errors_[0]);
    auto made = session_.RegisterTemplate(job);
    if (!made.ok()) return made.status();
    steps_.push_back(*std::move(made));
  }
  return Status::Ok();
}

Job Update::Step(const Lesson& lesson, std::size_t rows, std::size_t launches) const {
  const Memory& m = memory_;
  const auto u32 = [](std::size_t value) { return static_cast<std::uint32_t>(value); };
  // The first layer and its gradient are nearly all of it: half of the launches each.
  const std::size_t pieces = std::max<std::size_t>(1, launches / 2);
  const auto in_pieces = [&](std::size_t all, const auto& add) {
    for (std::size_t i = 0; i < pieces; ++i) {
      const std::size_t from = all * i / pieces, to = all * (i + 1) / pieces;
      if (from < to) add(u32(from), u32(to - from));
    }
  };
  const std::size_t parts = rows / kRowsPerPart;
  Job job;
  job.Launch(module_.kernel("gather_pairs"), Dim3{1, u32(rows / kGatherRows)},
             Dim3{kEmbedding, kGatherRows}, m.items, lesson.items, m.users, lesson.users, m.x);
  in_pieces(rows / kRowsPerBlock, [&](std::uint32_t from, std::uint32_t blocks) {
    job.Launch(module_.kernel("hidden_layer"), Dim3{1, blocks}, Dim3{kHidden, kRowsPerBlock}, m.x,
               m.hidden, from * kRowsPerBlock, m.h);
  });
  job.Launch(module_.kernel("score_layer"), Dim3{u32(rows / kScoresPerBlock)},
             Dim3{kScoresPerBlock}, m.h, m.score, m.scores);
  job.Launch(module_.kernel("error_of"), Dim3{u32(rows / kScoresPerBlock)}, Dim3{kScoresPerBlock},
             m.scores, lesson.wanted, m.error);
  in_pieces(parts, [&](std::uint32_t from, std::uint32_t count) {
    job.Launch(module_.kernel("hidden_gradient"), Dim3{1, kEmbedding + 1, count}, Dim3{kHidden},
               m.x, m.h, m.score, m.error, from, kRowsPerPart, m.hidden_gradient);
  });
  job.Launch(module_.kernel("score_gradient"), Dim3{u32(parts)}, Dim3{kScoreWeights}, m.h, m.error,
             kRowsPerPart, m.score_gradient);
  const float rate = kRate / static_cast<float>(rows);
  const auto blocks = [](std::uint32_t weights) { return (weights + kStepBlock - 1) / kStepBlock; };
  job.Launch(module_.kernel("move_weights"), Dim3{blocks(kHiddenWeights)}, Dim3{kStepBlock},
             m.hidden, m.hidden_gradient, kHiddenWeights, u32(parts), rate);
  job.Launch(module_.kernel("move_weights"), Dim3{blocks(kScoreWeights)}, Dim3{kStepBlock}, m.score,
             m.score_gradient, kScoreWeights, u32(parts), rate);
  return job;
}

Status Update::CompareOneStep(const Layers& start) {
  Status status = samples::RunOnce(
      session_, Job().Write(memory_.hidden, start.hidden).Write(memory_.score, start.score));
  if (!status.ok()) return status;
  Result<gpusched::Submission> step = Submit();
  if (!step.ok()) return step.status();
  if (const auto report = step->Wait(); !report.ok()) return report.status();
  Layers moved = start, computed = start;
  status = samples::RunOnce(
      session_, Job().Read(memory_.hidden, moved.hidden).Read(memory_.score, moved.score));
  if (!status.ok()) return status;

  Batch batch = batches_[0];
  batch.items.resize(rows_);
  batch.users.resize(rows_);
  batch.wanted.resize(rows_);
  const double loss = recommendation::Step(computed, batch, catalogue_, kRate);
  first_loss_ = MeanSquare(errors_[0]);
  const bool losses_equal = std::abs(first_loss_ - loss) <= 1e-4 * loss;
  if (losses_equal && AreClose(moved, computed)) return Status::Ok();
  return Status(gpusched::StatusCode::kInternal, "DATA_DIFFERS",
                "one step on the device differs from the same step computed on the CPU");
}

Result<gpusched::Submission> Update::Submit(const gpusched::SubmitOptions& options) {
  const std::size_t step = submitted_++;
  std::vector<float>& errors = errors_[step % errors_.size()];
  return session_.Submit(steps_[step % steps_.size()],
                         gpusched::Changes().Read(read_, errors.data()), options);
}

double Update::last_loss() const {
  const std::size_t known = submitted_ > kMostOutstanding ? submitted_ - kMostOutstanding : 1;
  return MeanSquare(errors_[(known - 1) % errors_.size()]);
}

}  // namespace recommendation
