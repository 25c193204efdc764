// Walks the entries of each container; a length that does not fit ends the walk with an error.
#include "device/cuda/ptx/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <optional>
#include <utility>

#include "device/cuda/ptx/bytes.h"
#include "gpusched/reasons.h"

namespace gpusched::device::ptx {
namespace {

constexpr std::uint32_t kMagic = 0xBA55ED50;
constexpr std::uint16_t kVersion = 1;
constexpr std::uint64_t kContainerHeader = 16;
constexpr std::uint64_t kLeastEntryHeader = 64;
constexpr std::uint16_t kPtxKind = 1, kElfKind = 2;
constexpr std::uint64_t kLz4 = 0x2000, kZstd = 0x8000;

Status Bad(std::string_view what) {
  return {StatusCode::kInvalidArgument, reason::kBadModule, "fat binary: " + std::string(what)};
}

struct Entry {
  std::uint16_t kind = 0;
  std::uint32_t header = 0, compressed = 0, sm = 0;
  std::uint64_t payload = 0, flags = 0, plain = 0;
};

std::optional<Entry> EntryAt(std::string_view bytes, std::uint64_t at) {
  const auto header = PartOf(bytes, at, kLeastEntryHeader);
  if (!header) return std::nullopt;
  return Entry{.kind = *NumberAt<std::uint16_t>(*header, 0),
               .header = *NumberAt<std::uint32_t>(*header, 4),
               .compressed = *NumberAt<std::uint32_t>(*header, 16),
               .sm = *NumberAt<std::uint32_t>(*header, 28),
               .payload = *NumberAt<std::uint64_t>(*header, 8),
               .flags = *NumberAt<std::uint64_t>(*header, 40),
               .plain = *NumberAt<std::uint64_t>(*header, 56)};
}

// `plain` is what the header claims; `room` what may still be unpacked.
Result<std::string> Unpack(std::string_view packed, const Entry& entry, std::size_t room) {
  if (entry.plain == 0 || entry.plain > room) return Bad("an image claims to unpack to too much");
  std::string plain(entry.plain, '\0');
  if ((entry.flags & kZstd) != 0) {
    const std::size_t size =
        ZSTD_decompress(plain.data(), plain.size(), packed.data(), packed.size());
    if (ZSTD_isError(size) || size != plain.size()) return Bad("an image's zstd frame is broken");
    return plain;
  }
  const int size = LZ4_decompress_safe(packed.data(), plain.data(), static_cast<int>(packed.size()),
                                       static_cast<int>(plain.size()));
  if (size < 0 || static_cast<std::size_t>(size) != plain.size()) {
    return Bad("an image's LZ4 block is broken");
  }
  return plain;
}

// How many bytes a packed image can yield at most, by its size: what claims more is lying, and is
// refused before memory is taken for it.
std::uint64_t MostPlain(std::uint64_t packed, std::uint64_t flags) {
  constexpr std::uint64_t kMostLz4Ratio = 255;
  constexpr std::uint64_t kMostZstdRatio = 1 << 16;  // runs of one byte come near
  return (packed + 64) * ((flags & kZstd) != 0 ? kMostZstdRatio : kMostLz4Ratio);
}

class Walk {
 public:
  Status Take(std::string_view container) {
    for (std::uint64_t at = 0; at < container.size();) {
      const std::optional<Entry> entry = EntryAt(container, at);
      if (!entry) return Bad("an entry's header is cut off");
      const auto payload = entry->header < kLeastEntryHeader
                               ? std::nullopt
                               : PartOf(container, at + entry->header, entry->payload);
      if (!payload) return Bad("an entry is longer than its container");
      if (Status status = TakeEntry(*entry, *payload); !status.ok()) return status;
      at += entry->header + entry->payload;
    }
    return Status::Ok();
  }
  std::vector<FatbinImage> images;

 private:
  Status TakeEntry(const Entry& entry, std::string_view payload) {
    if (entry.kind != kPtxKind && entry.kind != kElfKind) return Status::Ok();
    if (images.size() == kMostFatbinImages) return Bad("more than 256 images");
    FatbinImage image{
        .kind = entry.kind == kPtxKind ? FatbinImage::Kind::kPtx : FatbinImage::Kind::kElf,
        .sm = entry.sm,
        .bytes = {}};
    if ((entry.flags & (kLz4 | kZstd)) != 0) {
      // Padded to a multiple of eight behind its real size.
      const auto packed = PartOf(payload, 0, entry.compressed);
      if (!packed) return Bad("an image is longer than its entry");
      if (entry.plain > MostPlain(packed->size(), entry.flags)) {
        return Bad("an image claims to unpack to more than it can");
      }
      Result<std::string> plain = Unpack(*packed, entry, kMostPlainBytes - plain_bytes_);
      if (!plain.ok()) return plain.status();
      image.bytes = *std::move(plain);
    } else {
      if (payload.size() > kMostPlainBytes - plain_bytes_) return Bad("its images are too large");
      image.bytes = payload;
    }
    plain_bytes_ += image.bytes.size();
    if (image.kind == FatbinImage::Kind::kPtx) {
      image.bytes.resize(image.bytes.find_last_not_of('\0') + 1);
    }
    images.push_back(std::move(image));
    return Status::Ok();
  }

  std::size_t plain_bytes_ = 0;
};

}  // namespace

bool LooksLikeFatbin(std::string_view bytes) { return NumberAt<std::uint32_t>(bytes, 0) == kMagic; }
bool LooksLikeElf(std::string_view bytes) {
  return bytes.starts_with(
      "\x7f"
      "ELF");
}

Result<std::vector<FatbinImage>> ParseFatbin(std::string_view bytes) {
  if (!LooksLikeFatbin(bytes)) return Bad("it does not begin as one does");
  Walk walk;
  // Several containers may stand one after the other.
  while (LooksLikeFatbin(bytes)) {
    const auto version = NumberAt<std::uint16_t>(bytes, 4),
               header = NumberAt<std::uint16_t>(bytes, 6);
    const auto size = NumberAt<std::uint64_t>(bytes, 8);
    if (!size) return Bad("its header is cut off");
    if (version != kVersion || header < kContainerHeader) return Bad("of an unknown version");
    const auto container = PartOf(bytes, *header, *size);
    if (!container) return Bad("it is shorter than its header says");
    if (Status status = walk.Take(*container); !status.ok()) return status;
    bytes.remove_prefix(*header + *size);
  }
  return std::move(walk.images);
}

}  // namespace gpusched::device::ptx
