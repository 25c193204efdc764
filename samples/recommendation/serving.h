// The serving side: answers requests for a user's best candidates, one job a request.
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

// One request and its answer; it must live until the job is over.
struct Request {
  const float* user = nullptr;  // kEmbedding values
  // As the device lays them out: ids, then scores at kScoresAt.
  alignas(8) std::array<std::byte, 256> bytes{};

  Best best() const;
};

class Serving {
 public:
  // Copies catalogue and layers to the device and takes as many candidates a request as take
  // size.alone. Catalogue, layers and session must outlive it.
  static gpusched::Result<std::unique_ptr<Serving>> Open(gpusched::Session& session,
                                                         const Catalogue& catalogue,
                                                         const Layers& layers,
                                                         const samples::Size& size);

  gpusched::Result<gpusched::Submission> Submit(Request& request,
                                                const gpusched::SubmitOptions& options = {});
  bool IsRight(const Request& request) const;

  std::size_t candidates() const { return candidates_.size(); }

 private:
  struct Memory {
    gpusched::Buffer items, ids, hidden, score;  // what is asked about
    gpusched::Buffer user, x, h, scores, best;   // one request's
  };
  Serving(gpusched::Session& session, const Catalogue& catalogue, const Layers& layers,
          gpusched::Module module, Memory memory)
      : session_(session),
        catalogue_(catalogue),
        layers_(layers),
        module_(std::move(module)),
        memory_(std::move(memory)) {}
  static gpusched::Result<Memory> Allocate(gpusched::Session& session, const Catalogue& catalogue);
  // Makes the job for so many candidates.
  gpusched::Status Prepare(std::size_t candidates, std::size_t launches);

  gpusched::Session& session_;
  const Catalogue& catalogue_;
  const Layers& layers_;
  gpusched::Module module_;
  Memory memory_;
  std::vector<std::uint32_t> candidates_;
  std::optional<gpusched::Template> job_;
  std::uint32_t read_ = 0;  // the job's last operation
};

}  // namespace recommendation
