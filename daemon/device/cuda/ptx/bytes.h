// Reads little-endian numbers out of bytes from outside, never past their end.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace gpusched::device::ptx {

// The number at `at`; nothing where it would end past the last byte.
template <std::unsigned_integral T>
std::optional<T> NumberAt(std::string_view bytes, std::uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// [at, at + size); nothing where it does not lie within.
inline std::optional<std::string_view> PartOf(std::string_view bytes, std::uint64_t at,
                                              std::uint64_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return std::nullopt;
  return bytes.substr(at, size);
}

// The text at `at` up to its NUL; nothing where there is none.
inline std::optional<std::string_view> TextAt(std::string_view bytes, std::uint64_t at) {
  if (at >= bytes.size()) return std::nullopt;
  const std::size_t end = bytes.find('\0', at);
  if (end == std::string_view::npos) return std::nullopt;
  return bytes.substr(at, end - at);
}

}  // namespace gpusched::device::ptx
