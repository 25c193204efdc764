// A buffer: memory of a session on its device, freed with its handle.
#pragma once

#include <cstdint>
#include <memory>

#include "gpusched/export.h"
#include "gpusched/status.h"

namespace gpusched {

namespace internal {
class Stream;
struct BufferHold;
}  // namespace internal

// A place inside a buffer, as an argument of a launch.
struct BufferAt {
  const internal::Stream* stream = nullptr;  // whose buffer it is
  std::uint64_t buffer = 0;                  // 0: the handle was moved from
  std::uint64_t offset = 0;
};

// Move-only. Destroying or freeing it gives the memory back when the jobs submitted before are
// done.
class GPUSCHED_EXPORT Buffer {
 public:
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  std::uint64_t bytes() const;
  BufferAt At(std::uint64_t offset) const;
  Status Free();

 private:
  friend class Session;
  explicit Buffer(std::unique_ptr<internal::BufferHold> hold);

  std::unique_ptr<internal::BufferHold> hold_;
};

}  // namespace gpusched
