// A job under construction: an ordered list of copies and launches, as a plain value.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpusched/export.h"
#include "gpusched/memory.h"
#include "gpusched/module.h"
#include "gpusched/status.h"

namespace gpusched {

namespace internal {
class Encoding;
}  // namespace internal

using Duration = std::chrono::nanoseconds;

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

// A launch told by its threads, as OpenCL's is, where {grid, block} tells it by its blocks. Only
// OpenCL has offsets: BAD_OFFSET on other devices, and beyond what the device's kernels can do
// (2^20 - 1 along each axis, where launches are cut). BAD_BLOCK if the block does not divide the
// threads.
struct NdRange {
  struct Offset {
    std::uint32_t x = 0, y = 0, z = 0;
  };
  Dim3 threads;         // all of them: OpenCL's global size
  Dim3 block{0, 0, 0};  // its local size; zeros: the one that the kernel requires, else the device
                        // chooses one
  Offset offset = {};   // its global offset, added to every thread's global ids
};

// So many bytes of local (shared) memory for a kernel's parameter.
struct Local {
  std::uint64_t bytes = 0;
};

// What a launch passes for one parameter: a buffer, a place in one, local memory, or a value that
// is copied byte by byte and so must be as wide as the kernel's parameter.
class Argument {
 public:
  enum class Kind : std::uint8_t { kBuffer, kValue, kLocal };

  Argument(const Buffer& buffer) : Argument(buffer.At(0)) {}  // NOLINT: arguments convert
  Argument(BufferAt at) : kind_(Kind::kBuffer), at_(at) {}    // NOLINT
  Argument(Local local) : kind_(Kind::kLocal), at_{.offset = local.bytes} {}  // NOLINT
  template <typename T>
  requires(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_array_v<T> &&
           !std::is_null_pointer_v<T>) Argument(const T& value)  // NOLINT
      : kind_(Kind::kValue), value_(reinterpret_cast<const char*>(&value), sizeof value) {}

  Kind kind() const { return kind_; }
  const BufferAt& buffer() const { return at_; }
  const std::string& value() const { return value_; }
  std::uint64_t local_bytes() const { return at_.offset; }

 private:
  Kind kind_;
  BufferAt at_;
  std::string value_;
};

// A range of trivially copyable things that lie side by side: a vector, span, array.
template <typename R>
concept PlainRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::is_trivially_copyable_v<std::ranges::range_value_t<R>>;

// Operations take effect in the order named, jobs in the order of their queue. A Job holds no
// bytes: what Write names is read by Submit (or RegisterTemplate) and must live until that returns;
// what Read names must live until the submission is waited for, or destroyed.
class GPUSCHED_EXPORT Job {
 public:
  // Host to buffer.
  Job& Write(const Buffer& to, const void* from, std::uint64_t bytes, std::uint64_t offset = 0) &;
  template <PlainRange R>
  Job& Write(const Buffer& to, const R& from, std::uint64_t offset = 0) & {
    return Write(to, std::ranges::data(from), BytesOf(from), offset);
  }
  // Buffer to host.
  Job& Read(const Buffer& from, void* to, std::uint64_t bytes, std::uint64_t offset = 0) &;
  template <PlainRange R>
  Job& Read(const Buffer& from, R&& to, std::uint64_t offset = 0) & {
    static_assert(!std::is_const_v<std::remove_pointer_t<decltype(std::ranges::data(to))>>,
                  "Read needs somewhere to write to");
    return Read(from, std::ranges::data(to), BytesOf(to), offset);
  }
  // Every byte of the range becomes `value`.
  Job& Fill(const Buffer& what, std::uint8_t value, std::uint64_t bytes,
            std::uint64_t offset = 0) &;

  // `grid` in blocks, `block` in threads, arguments in the kernel's order.
  template <typename... Arguments>
  Job& Launch(const Kernel& kernel, Dim3 grid, Dim3 block, const Arguments&... arguments) & {
    return LaunchWith(kernel, grid, block, {Argument(arguments)...});
  }
  // By name alone, where exactly one of the session's modules has such a kernel.
  template <typename... Arguments>
  Job& Launch(std::string_view kernel, Dim3 grid, Dim3 block, const Arguments&... arguments) & {
    return LaunchWith(kernel, grid, block, {Argument(arguments)...});
  }
  // By threads. The type is written out, so that it is not taken for a grid: NdRange{{1024, 768}}.
  template <std::same_as<NdRange> Range, typename... Arguments>
  Job& Launch(const Kernel& kernel, const Range& range, const Arguments&... arguments) & {
    return LaunchWith(kernel, range, {Argument(arguments)...});
  }
  template <std::same_as<NdRange> Range, typename... Arguments>
  Job& Launch(std::string_view kernel, const Range& range, const Arguments&... arguments) & {
    return LaunchWith(kernel, range, {Argument(arguments)...});
  }
  // With arguments that are known at run time only.
  Job& LaunchWith(const Kernel& kernel, Dim3 grid, Dim3 block, std::vector<Argument> arguments) &;
  Job& LaunchWith(std::string_view kernel, Dim3 grid, Dim3 block,
                  std::vector<Argument> arguments) &;
  Job& LaunchWith(const Kernel& kernel, const NdRange& range, std::vector<Argument> arguments) &;
  Job& LaunchWith(std::string_view kernel, const NdRange& range, std::vector<Argument> arguments) &;

  // The same on a temporary, so that a job can be written in one expression.
  template <typename... A>
  Job Write(const Buffer& to, A&&... rest) && {
    return std::move(Write(to, std::forward<A>(rest)...));
  }
  template <typename... A>
  Job Read(const Buffer& from, A&&... rest) && {
    return std::move(Read(from, std::forward<A>(rest)...));
  }
  template <typename... A>
  Job Fill(const Buffer& what, A&&... rest) && {
    return std::move(Fill(what, std::forward<A>(rest)...));
  }
  template <typename K, typename... A>
  Job Launch(const K& kernel, Dim3 grid, Dim3 block, const A&... rest) && {
    return std::move(Launch(kernel, grid, block, rest...));
  }
  template <typename K, std::same_as<NdRange> Range, typename... A>
  Job Launch(const K& kernel, const Range& range, const A&... rest) && {
    return std::move(Launch(kernel, range, rest...));
  }
  template <typename K>
  Job LaunchWith(const K& kernel, Dim3 grid, Dim3 block, std::vector<Argument> arguments) && {
    return std::move(LaunchWith(kernel, grid, block, std::move(arguments)));
  }
  template <typename K>
  Job LaunchWith(const K& kernel, const NdRange& range, std::vector<Argument> arguments) && {
    return std::move(LaunchWith(kernel, range, std::move(arguments)));
  }

  std::size_t size() const { return operations_.size(); }

 private:
  friend class internal::Encoding;

  struct Operation {
    enum class Kind : std::uint8_t { kLaunch, kWrite, kRead, kFill };
    Kind kind = Kind::kLaunch;
    std::uint8_t value = 0;  // of a fill
    BufferAt at;             // of a copy or fill
    std::uint64_t bytes = 0;
    const void* from = nullptr;
    void* to = nullptr;
    std::shared_ptr<const internal::ModuleRecord> module;  // of a launch; none: found by name
    std::string kernel;
    Dim3 grid, block;
    std::optional<NdRange> range;  // instead of grid and block
    std::vector<Argument> arguments;
  };

  template <typename R>
  static std::uint64_t BytesOf(const R& range) {
    return std::ranges::size(range) * sizeof(std::ranges::range_value_t<R>);
  }

  std::vector<Operation> operations_;
};

// What one submission of a template does differently. Operations count from 0 in the order in which
// they were added to the job, a launch's arguments likewise.
class GPUSCHED_EXPORT Changes {
 public:
  Changes& Set(std::uint32_t launch, std::uint32_t argument, Argument value) &;
  // As many bytes as the template's operation has, for this submission only; of several for one
  // operation the last counts. A Write that is not named writes the template's own bytes.
  Changes& Write(std::uint32_t operation, const void* from) &;
  Changes& Read(std::uint32_t operation, void* to) &;

  Changes Set(std::uint32_t launch, std::uint32_t argument, Argument value) && {
    return std::move(Set(launch, argument, std::move(value)));
  }
  Changes Write(std::uint32_t operation, const void* from) && {
    return std::move(Write(operation, from));
  }
  Changes Read(std::uint32_t operation, void* to) && { return std::move(Read(operation, to)); }

 private:
  friend class internal::Encoding;

  struct ArgumentChange {
    std::uint32_t launch = 0, argument = 0;
    Argument value;
  };
  struct Source {
    std::uint32_t operation = 0;
    const void* from = nullptr;
  };
  struct Target {
    std::uint32_t operation = 0;
    void* to = nullptr;
  };
  std::vector<ArgumentChange> arguments_;
  std::vector<Source> sources_;
  std::vector<Target> targets_;
};

}  // namespace gpusched
