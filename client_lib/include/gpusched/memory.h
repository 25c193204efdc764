// A buffer: memory of a session on its device, freed with its handle.
#pragma once

#include <cstdint>
#include <memory>

#include "gpusched/export.h"
#include "gpusched/status.h"

namespace gpusched {

namespace internal {
class Stream;
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
  Buffer(std::shared_ptr<internal::Stream> stream, std::uint64_t id, std::uint64_t bytes);

  std::shared_ptr<internal::Stream> stream_;  // none: moved from, or freed
  std::uint64_t id_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace gpusched
