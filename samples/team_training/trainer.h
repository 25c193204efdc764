// One member of the team: a classifier, its data in device memory, and steps that train it.
#pragma once

#include <gpusched/client.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/computing_session.h"

namespace team {

// The sizes that classifier.cl is written for.
inline constexpr std::size_t kFeatures = 64, kClasses = 10, kRowsPerPart = 64;
inline constexpr std::size_t kWeights = kFeatures * kClasses;

// In plain C++, for data and for checking.
struct Data {
  std::vector<float> rows;  // of kFeatures, the last of which is 1
  std::vector<std::uint32_t> labels;
};
Data RandomData(std::size_t rows, std::uint32_t seed);
// A step over the `batch` rows from `first` on; gives the mean loss before.
double Step(std::vector<float>& weights, const Data& data, std::size_t first, std::size_t batch,
            float rate);

class Trainer {
 public:
  // Fills the session's memory quota with data, and takes as many rows a step as take
  // size.alone. The session must outlive it.
  static gpusched::Result<std::unique_ptr<Trainer>> Open(gpusched::Session& session,
                                                         std::uint32_t seed,
                                                         const samples::Size& size);

  // The next step; at most kMostOutstanding may be on their way.
  static constexpr std::size_t kMostOutstanding = 4;
  gpusched::Result<gpusched::Submission> Submit(const gpusched::SubmitOptions& options = {});

  // With nothing outstanding: one more step, compared with the same step on the CPU.
  gpusched::Result<bool> NextStepIsRight();
  // Whether one byte more than the quota has left is refused for that reason.
  bool RefusesOneByteTooMany();

  // Mean losses: of the first step, and of one a few steps before the last. Not to be asked while
  // another thread submits.
  double first_loss() const { return first_loss_; }
  double last_loss() const;
  std::size_t rows() const { return data_.labels.size(); }
  std::size_t batch() const { return batch_; }
  std::uint64_t memory_used() const { return memory_used_; }

 private:
  struct Memory {
    gpusched::Buffer data, labels, weights, cursor, errors, losses, gradient;
  };
  Trainer(gpusched::Session& session, gpusched::Module module, Memory memory, Data data,
          std::uint64_t memory_used)
      : session_(session),
        module_(std::move(module)),
        memory_(std::move(memory)),
        data_(std::move(data)),
        memory_used_(memory_used) {}
  gpusched::Status Forget();
  gpusched::Status Prepare(std::size_t batch, std::size_t launches);

  gpusched::Session& session_;
  gpusched::Module module_;
  Memory memory_;
  Data data_;
  std::uint64_t memory_used_ = 0;
  std::size_t batch_ = 0;
  std::optional<gpusched::Template> step_;
  std::uint32_t read_ = 0;  // the step's last operation

  // Each step reads its rows' losses into the oldest of these.
  std::array<std::vector<float>, 2 * kMostOutstanding> losses_;
  std::size_t submitted_ = 0;
  double first_loss_ = 0;
};

}  // namespace team
