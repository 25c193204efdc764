// A session's memory: one memfd that the process owns by its descriptor, mapped buffer by buffer.
//
// A buffer lies at a file offset no other buffer of the arena ever had; the file is sparse, so what
// is freed costs nothing, and a fresh buffer reads as zeros without being touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gpusched/status.h"

namespace gpusched::device {

class Arena : public std::enable_shared_from_this<Arena> {
 public:
  // A buffer's memory. Keeps the arena, so it may outlive everything else; gives its pages back
  // when it goes.
  class Mapping {
   public:
    Mapping(std::shared_ptr<Arena> arena, std::uint64_t offset, std::uint64_t size, std::byte* data)
        : arena_(std::move(arena)), offset_(offset), size_(size), data_(data) {}
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    std::byte* data() const { return data_; }
    std::uint64_t offset() const { return offset_; }  // in the arena's file

   private:
    std::shared_ptr<Arena> arena_;
    std::uint64_t offset_;
    std::uint64_t size_;  // whole pages
    std::byte* data_;
  };

  // RESOURCE_EXHAUSTED without a descriptor to spare. `name` shows in /proc.
  static Result<std::shared_ptr<Arena>> Make(const std::string& name);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Page-aligned and zeroed. RESOURCE_EXHAUSTED without address space; `bytes` is at least 1.
  // Called by one thread at a time.
  Result<std::unique_ptr<Mapping>> Map(std::uint64_t bytes);
  int descriptor() const { return descriptor_; }

 private:
  explicit Arena(int descriptor) : descriptor_(descriptor) {}

  const int descriptor_;
  std::uint64_t end_ = 0;  // of the file; offsets below it were handed out
};

}  // namespace gpusched::device
