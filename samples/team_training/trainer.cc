// The job of a step: predict in pieces, gradient in pieces, move the weights, losses out.
#include "trainer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/classifier.h"

namespace team {

using gpusched::Dim3;
using gpusched::Duration;
using gpusched::Job;
using gpusched::Result;
using gpusched::Status;

namespace {

constexpr std::size_t kUnit = 4 * kRowsPerPart;
// The rest of a quota is data. A batch takes a tenth of what its rows take, and is at most this.
constexpr std::size_t kMostBatch = 16 * 1'024;
constexpr std::uint32_t kBlock = 64;
constexpr float kRate = 0.2f;
constexpr std::size_t kRowBytes = kFeatures * sizeof(float) + sizeof(std::uint32_t);

struct Sizes {
  std::size_t rows = 0, most_batch = 0;
  std::array<std::uint64_t, 7> bytes{};  // in the order of Trainer::Memory
  std::uint64_t all = 0;
};

// What fits into `quota`; no rows where nothing does.
Sizes SizesFor(std::uint64_t quota) {
  Sizes sizes;
  for (std::size_t batch = kMostBatch; batch >= kUnit; batch /= 2) {
    const std::uint64_t fixed =
        (kWeights + batch * (kClasses + 1) + batch / kRowsPerPart * kWeights) * sizeof(float) +
        sizeof(std::uint32_t);
    if (fixed + batch * kRowBytes > quota) continue;
    sizes.rows = (quota - fixed) / kRowBytes;
    sizes.most_batch = batch;
    sizes.bytes = {sizes.rows * kFeatures * sizeof(float),
                   sizes.rows * sizeof(std::uint32_t),
                   kWeights * sizeof(float),
                   sizeof(std::uint32_t),
                   batch * kClasses * sizeof(float),
                   batch * sizeof(float),
                   batch / kRowsPerPart * kWeights * sizeof(float)};
    for (const std::uint64_t bytes : sizes.bytes) sizes.all += bytes;
    return sizes;
  }
  return sizes;
}

double Mean(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::Open(gpusched::Session& session, std::uint32_t seed,
                                               const samples::Size& size) {
  const Sizes sizes = SizesFor(session.memory());
  if (sizes.rows == 0) {
    return Status(gpusched::StatusCode::kInvalidArgument, "TOO_LITTLE_MEMORY",
                  "a quota of " + std::to_string(session.memory()) +
                      " bytes holds no batch of data; a trainer wants 1 MiB or more");
  }
  auto module =
      session.LoadModule({.source = kernels::kClassifier, .cuda_source = kernels::kClassifier});
  if (!module.ok()) return module.status();
  std::vector<gpusched::Buffer> made;
  for (const std::uint64_t bytes : sizes.bytes) {
    auto buffer = session.Allocate(bytes);
    if (!buffer.ok()) return buffer.status();
    made.push_back(*std::move(buffer));
  }
  std::unique_ptr<Trainer> trainer(
      new Trainer(session, *std::move(module),
                  {std::move(made[0]), std::move(made[1]), std::move(made[2]), std::move(made[3]),
                   std::move(made[4]), std::move(made[5]), std::move(made[6])},
                  RandomData(sizes.rows, seed), sizes.all));
  const Memory& m = trainer->memory_;
  Status status = samples::RunOnce(
      session, Job().Write(m.data, trainer->data_.rows).Write(m.labels, trainer->data_.labels));
  if (!status.ok()) return status;

  const auto batch = samples::FindAmount(
      size, kUnit, sizes.most_batch, [&](std::size_t amount) -> Result<Duration> {
        if (Status prepared = trainer->Prepare(amount, size.launches()); !prepared.ok())
          return prepared;
        return samples::TimeAlone([&] { return trainer->Submit(); });
      });
  if (!batch.ok()) return batch.status();
  status = trainer->Prepare(*batch, size.launches());
  if (!status.ok()) return status;
  return trainer;
}

// Starts anew: no weights, the first batch.
Status Trainer::Forget() {
  return samples::RunOnce(session_, Job()
                                        .Fill(memory_.weights, 0, kWeights * sizeof(float))
                                        .Fill(memory_.cursor, 0, sizeof(std::uint32_t)));
}

Status Trainer::Prepare(std::size_t batch, std::size_t launches) {
  batch_ = batch;
  submitted_ = 0;
  losses_.fill(std::vector<float>(batch));
  if (Status status = Forget(); !status.ok()) return status;

  const Memory& m = memory_;
  const auto u32 = [](std::size_t value) { return static_cast<std::uint32_t>(value); };
  // Predicting and the gradient take about as long: half of the launches each.
  const std::size_t pieces = std::max<std::size_t>(1, launches / 2);
  const auto in_pieces = [&](std::size_t all, const auto& add) {
    for (std::size_t i = 0; i < pieces; ++i) {
      const std::size_t from = all * i / pieces, to = all * (i + 1) / pieces;
      if (from < to) add(u32(from), u32(to - from));
    }
  };
  Job job;
  in_pieces(batch / kBlock, [&](std::uint32_t from, std::uint32_t blocks) {
    job.Launch(module_.kernel("predict"), Dim3{blocks}, Dim3{kBlock}, m.data, m.labels, m.weights,
               m.cursor, from * kBlock, m.errors, m.losses);
  });
  const std::size_t parts = batch / kRowsPerPart;
  in_pieces(parts, [&](std::uint32_t from, std::uint32_t count) {
    job.Launch(module_.kernel("gradient_of"), Dim3{u32(kWeights / kBlock), count}, Dim3{kBlock},
               m.data, m.errors, m.cursor, from, m.gradient);
  });
  job.Launch(module_.kernel("move_weights"), Dim3{u32(kWeights / kBlock)}, Dim3{kBlock}, m.weights,
             m.gradient, u32(parts), kRate / static_cast<float>(batch), m.cursor, u32(rows()));
  read_ = u32(job.size());
  job.Read(m.losses, losses_[0]);
  auto made = session_.RegisterTemplate(job);
  if (!made.ok()) return made.status();
  step_.emplace(*std::move(made));
  return Status::Ok();
}

Result<gpusched::Submission> Trainer::Submit(const gpusched::SubmitOptions& options) {
  std::vector<float>& losses = losses_[submitted_++ % losses_.size()];
  return session_.Submit(*step_, gpusched::Changes().Read(read_, losses.data()), options);
}

Result<bool> Trainer::NextStepIsRight() {
  std::vector<float> weights(kWeights), moved(kWeights);
  std::array<std::uint32_t, 1> cursor{};
  Status status =
      samples::RunOnce(session_, Job().Read(memory_.weights, weights).Read(memory_.cursor, cursor));
  if (!status.ok()) return status;
  const std::vector<float>& losses = losses_[submitted_ % losses_.size()];
  Result<gpusched::Submission> step = Submit();
  if (!step.ok()) return step.status();
  if (const auto report = step->Wait(); !report.ok()) return report.status();
  status = samples::RunOnce(session_, Job().Read(memory_.weights, moved));
  if (!status.ok()) return status;

  if (submitted_ == 1) first_loss_ = Mean(losses);
  const double loss = Step(weights, data_, cursor[0], batch_, kRate);
  // Sums of as many terms in another order, of exponentials that differ in their last place.
  constexpr double kRounding = 1e-4;
  bool right = std::abs(Mean(losses) - loss) <= kRounding * (1 + loss);
  for (std::size_t i = 0; i < kWeights; ++i) {
    right = right && std::abs(weights[i] - moved[i]) <= kRounding;
  }
  return right;
}

bool Trainer::RefusesOneByteTooMany() {
  const auto more = session_.Allocate(session_.memory() - memory_used_ + 1);
  return !more.ok() && more.status().reason() == gpusched::reason::kQuotaExceeded;
}

double Trainer::last_loss() const {
  const std::size_t known = submitted_ > kMostOutstanding ? submitted_ - kMostOutstanding : 1;
  return Mean(losses_[(known - 1) % losses_.size()]);
}

}  // namespace team
