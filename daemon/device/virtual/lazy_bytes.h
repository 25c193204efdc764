// Memory that reads as zeros and takes none of the host's until it is written.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace gpusched::device {

class LazyBytes {
 public:
  // Nothing if the host has no address space for it. `size` is at least 1.
  static std::optional<LazyBytes> Make(std::uint64_t size) {
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return std::nullopt;
    return LazyBytes(static_cast<std::byte*>(data), size);
  }
  LazyBytes(LazyBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  LazyBytes& operator=(LazyBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~LazyBytes() {
    if (data_ != nullptr) munmap(data_, size_);
  }

  std::byte* data() const { return data_; }
  std::uint64_t size() const { return size_; }

 private:
  LazyBytes(std::byte* data, std::uint64_t size) : data_(data), size_(size) {}

  std::byte* data_;
  std::uint64_t size_;
};

}  // namespace gpusched::device
