// The images inside a fat binary, taken apart with every length checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/status.h"

namespace gpusched::device::ptx {

struct FatbinImage {
  enum class Kind : std::uint8_t { kPtx, kElf };
  Kind kind = Kind::kPtx;
  std::uint32_t sm = 0;  // 75, 90, 100
  std::string bytes;     // plain: decompressed, PTX without its closing NULs
};

// Bounds on what a few bytes from outside may ask for.
inline constexpr std::size_t kMostFatbinImages = 256;
inline constexpr std::size_t kMostPlainBytes = 1u << 30;  // of all images of a fat binary together

bool LooksLikeFatbin(std::string_view bytes);
bool LooksLikeElf(std::string_view bytes);

// INVALID_ARGUMENT (BAD_MODULE) says what does not add up. Entries of other kinds are passed over.
Result<std::vector<FatbinImage>> ParseFatbin(std::string_view bytes);

}  // namespace gpusched::device::ptx
