// The game's side: a frame is one job, and one of its tiles comes back to be looked at.
#pragma once

#include <gpusched/client.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "common/computing_session.h"
#include "scene.h"

namespace game {

// A frame and what came back of it; it must live until the job is over.
struct Frame {
  std::size_t number = 0;
  std::size_t tile = 0;
  TilePixels pixels{};
};

class Frames {
 public:
  // Frames have as many rows of tiles as take size.alone. The session must outlive it.
  static gpusched::Result<std::unique_ptr<Frames>> Open(gpusched::Session& session,
                                                        const samples::Size& size);

  // Shades frame.number; another tile of each frame comes back.
  gpusched::Result<gpusched::Submission> Submit(Frame& frame,
                                                const gpusched::SubmitOptions& options = {});
  bool IsRight(const Frame& frame) const;

  std::size_t tile_rows() const { return tile_rows_; }

 private:
  struct Memory {
    gpusched::Buffer lights, counts, lists, frame;
  };
  Frames(gpusched::Session& session, gpusched::Module module, Memory memory, std::size_t launches)
      : session_(session),
        module_(std::move(module)),
        memory_(std::move(memory)),
        launches_(launches) {}

  gpusched::Session& session_;
  gpusched::Module module_;
  Memory memory_;
  std::size_t launches_ = 1;
  std::size_t tile_rows_ = 1;
};

}  // namespace game
