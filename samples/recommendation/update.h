// The update side: steps down the gradient of the model's error, one job a step.
#pragma once

#include <gpusched/client.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "common/computing_session.h"
#include "model.h"

namespace recommendation {

class Update {
 public:
  // Copies catalogue, a start that knows nothing, and batches to learn from to the device; a step
  // looks at as many rows as take size.alone. Then takes one step and compares the weights with a
  // plain CPU computation: DATA_DIFFERS if they are not equal. Catalogue and session must outlive
  // it.
  static gpusched::Result<std::unique_ptr<Update>> Open(gpusched::Session& session,
                                                        const Catalogue& catalogue,
                                                        const samples::Size& size);

  // The next step. At most kMostOutstanding may be on their way.
  static constexpr std::size_t kMostOutstanding = 4;
  gpusched::Result<gpusched::Submission> Submit(const gpusched::SubmitOptions& options = {});

  // Mean squared errors: of the first step, and of one a few steps before the last. Not to be asked
  // while another thread submits.
  double first_loss() const { return first_loss_; }
  double last_loss() const;
  std::size_t rows() const { return rows_; }

 private:
  struct Memory {
    gpusched::Buffer items, users, hidden, score;
    gpusched::Buffer x, h, scores, error, hidden_gradient, score_gradient;
  };
  struct Lesson {
    gpusched::Buffer items, users, wanted;
  };
  Update(gpusched::Session& session, const Catalogue& catalogue, gpusched::Module module,
         Memory memory, std::vector<Lesson> lessons)
      : session_(session),
        catalogue_(catalogue),
        module_(std::move(module)),
        memory_(std::move(memory)),
        lessons_(std::move(lessons)) {}
  static gpusched::Result<Memory> Allocate(gpusched::Session& session, const Catalogue& catalogue);
  static gpusched::Result<std::vector<Lesson>> AllocateLessons(gpusched::Session& session);
  gpusched::Status Load(const Layers& start);
  gpusched::Status Prepare(std::size_t rows, std::size_t launches);
  gpusched::Job Step(const Lesson& lesson, std::size_t rows, std::size_t launches) const;
  gpusched::Status CompareOneStep(const Layers& start);

  gpusched::Session& session_;
  const Catalogue& catalogue_;
  gpusched::Module module_;
  Memory memory_;
  std::vector<Lesson> lessons_;
  std::vector<Batch> batches_;
  std::vector<gpusched::Template> steps_;  // one for each lesson
  std::size_t rows_ = 0;
  std::uint32_t read_ = 0;  // a step's last operation

  // Each step reads its rows' errors into the oldest of these.
  std::array<std::vector<float>, 2 * kMostOutstanding> errors_;
  std::size_t submitted_ = 0;
  double first_loss_ = 0;
};

}  // namespace recommendation
