// Maps pieces of a growing, sparse memfd.
#include "device/opencl/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "gpusched/reasons.h"
#include "gpusched/units.h"

namespace gpusched::device {
namespace {

Status OutOfMemory(const std::string& what) {
  return Status(StatusCode::kResourceExhausted, reason::kDeviceMemory,
                what + ": " + std::strerror(errno) + "; free buffers or close sessions");
}

}  // namespace

Arena::Mapping::~Mapping() {
  munmap(data_, size_);
  // Without this the pages would stay in the file until the session closes.
  fallocate(arena_->descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(offset_), static_cast<off_t>(size_));
}

Result<std::shared_ptr<Arena>> Arena::Make(const std::string& name) {
  const int descriptor = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (descriptor < 0) return OutOfMemory("cannot create the session's memory");
  return std::shared_ptr<Arena>(new Arena(descriptor));
}

Arena::~Arena() { close(descriptor_); }

Result<std::unique_ptr<Arena::Mapping>> Arena::Map(std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  constexpr auto kLargestFile = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  if (bytes > kLargestFile - end_ - page) {
    errno = EFBIG;
    return OutOfMemory("cannot map " + FormatBytes(bytes));
  }
  const std::uint64_t size = (bytes + page - 1) / page * page;
  const std::uint64_t offset = end_;
  if (ftruncate(descriptor_, static_cast<off_t>(offset + size)) != 0) {
    return OutOfMemory("cannot grow the session's memory by " + FormatBytes(bytes));
  }
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_,
                    static_cast<off_t>(offset));
  if (data == MAP_FAILED) return OutOfMemory("cannot map " + FormatBytes(bytes));
  end_ = offset + size;
  return std::make_unique<Mapping>(shared_from_this(), offset, size, static_cast<std::byte*>(data));
}

}  // namespace gpusched::device
