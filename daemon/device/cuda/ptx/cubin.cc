// Reads the section table of the ELF file, then the attribute lists named ".nv.info.<kernel>".
#include "device/cuda/ptx/cubin.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "device/cuda/ptx/bytes.h"
#include "device/cuda/ptx/fatbin.h"
#include "gpusched/reasons.h"

namespace gpusched::device::ptx {
namespace {

// The ELF-64 format (System V ABI) and the parts of it that CUDA uses in its own way.
constexpr std::uint64_t kElfHeader = 64, kSectionHeader = 64;
constexpr std::uint16_t kCudaMachine = 190;
constexpr std::uint32_t kNoBits = 8;
constexpr unsigned char kFirstAbiWithWideSm = 8;
// CUDA's own bound; a cubin of the largest libraries has a few thousand sections.
constexpr std::uint16_t kMostParameters = 8'192;

// Of an attribute: how its value is kept, and the few that we read.
constexpr std::uint8_t kSizedValue = 4;
constexpr std::uint8_t kMaxThreads = 0x05, kRequiredBlock = 0x10, kParameter = 0x17;

Status Bad(std::string_view what) {
  return {StatusCode::kInvalidArgument, reason::kBadModule, "cubin: " + std::string(what)};
}

struct Section {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint64_t size = 0;
  std::string_view bytes;
};

std::optional<Section> SectionAt(std::string_view file, std::uint64_t at) {
  const auto header = PartOf(file, at, kSectionHeader);
  if (!header) return std::nullopt;
  Section section{.name = {},
                  .type = *NumberAt<std::uint32_t>(*header, 4),
                  .size = *NumberAt<std::uint64_t>(*header, 32),
                  .bytes = {}};
  if (section.type == kNoBits) return section;
  const auto bytes = PartOf(file, *NumberAt<std::uint64_t>(*header, 24), section.size);
  if (!bytes) return std::nullopt;
  section.bytes = *bytes;
  return section;
}

Result<std::vector<Section>> Sections(std::string_view file) {
  const auto table = NumberAt<std::uint64_t>(file, 40);
  const auto entry_size = NumberAt<std::uint16_t>(file, 58);
  const auto count = NumberAt<std::uint16_t>(file, 60),
             names_at = NumberAt<std::uint16_t>(file, 62);
  if (!names_at) return Bad("its header is cut off");
  if (entry_size != kSectionHeader) return Bad("its sections are of an unknown form");
  if (*table > file.size()) return Bad("its section table lies past its end");
  std::vector<Section> sections;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const std::optional<Section> section = SectionAt(file, *table + i * kSectionHeader);
    if (!section) return Bad("a section lies past its end");
    sections.push_back(*section);
  }
  if (*names_at >= sections.size()) return Bad("it has no section names");
  const std::string_view names = sections[*names_at].bytes;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const auto name = TextAt(names, *NumberAt<std::uint32_t>(file, *table + i * kSectionHeader));
    if (!name) return Bad("a section's name lies past its end");
    sections[i].name = *name;
  }
  return sections;
}

std::optional<std::string_view> After(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return name.substr(prefix.size());
}

Dim3 DimAt(std::string_view value) {
  return {NumberAt<std::uint32_t>(value, 0).value_or(0),
          NumberAt<std::uint32_t>(value, 4).value_or(0),
          NumberAt<std::uint32_t>(value, 8).value_or(0)};
}

// Index, ordinal, offset, then the size in the upper bits of the last word.
Status TakeParameter(std::string_view value, CubinKernel& kernel) {
  constexpr unsigned kSizeShift = 18;
  const auto ordinal = NumberAt<std::uint16_t>(value, 4),
             offset = NumberAt<std::uint16_t>(value, 6);
  const auto word = NumberAt<std::uint32_t>(value, 8);
  if (!word || *ordinal >= kMostParameters) return Bad("a parameter's layout makes no sense");
  if (kernel.parameters.size() <= *ordinal) kernel.parameters.resize(*ordinal + 1);
  kernel.parameters[*ordinal] = {.offset = *offset, .size = *word >> kSizeShift};
  kernel.has_layout = true;
  return Status::Ok();
}

Status TakeAttributes(std::string_view info, CubinKernel& kernel) {
  constexpr std::uint64_t kAttributeHeader = 4;
  while (!info.empty()) {
    const auto size = NumberAt<std::uint16_t>(info, 2);
    if (!size) return Bad("an attribute is cut off");
    const auto form = *NumberAt<std::uint8_t>(info, 0),
               attribute = *NumberAt<std::uint8_t>(info, 1);
    if (form != kSizedValue) {  // the value stands where the size would
      info.remove_prefix(kAttributeHeader);
      continue;
    }
    const auto value = PartOf(info, kAttributeHeader, *size);
    if (!value) return Bad("an attribute is longer than its section");
    if (attribute == kParameter) {
      if (Status status = TakeParameter(*value, kernel); !status.ok()) return status;
    } else if (attribute == kMaxThreads) {
      kernel.max_block_threads = Volume(DimAt(*value));
    } else if (attribute == kRequiredBlock) {
      kernel.required_block = DimAt(*value);
    }
    info.remove_prefix(kAttributeHeader + *size);
  }
  return Status::Ok();
}

std::uint32_t SmOf(std::string_view file) {
  const auto flags = *NumberAt<std::uint32_t>(file, 48);
  const auto abi = static_cast<unsigned char>(file[8]);
  return abi >= kFirstAbiWithWideSm ? (flags >> 8 & 0xff) : (flags & 0xff);
}

}  // namespace

Result<CubinInfo> ParseCubin(std::string_view bytes) {
  if (!LooksLikeElf(bytes) || bytes.size() < kElfHeader) return Bad("it is no ELF file");
  if (bytes[4] != 2 || bytes[5] != 1 || NumberAt<std::uint16_t>(bytes, 18) != kCudaMachine) {
    return Bad("it is not made for a CUDA device");
  }
  const Result<std::vector<Section>> sections = Sections(bytes);
  if (!sections.ok()) return sections.status();

  CubinInfo info{.sm = SmOf(bytes), .kernels = {}};
  std::unordered_map<std::string_view, std::size_t> index;
  for (const Section& section : *sections) {
    // Device functions have an attribute list too, but no constant bank with parameters.
    const auto name = After(section.name, ".text.");
    if (!name || !index.emplace(*name, info.kernels.size()).second) continue;
    CubinKernel kernel;
    kernel.name = *name;
    info.kernels.push_back(std::move(kernel));
  }
  std::vector<bool> is_entry(info.kernels.size(), false);
  for (const Section& section : *sections) {
    if (const auto bank = After(section.name, ".nv.constant0.")) {
      if (const auto kernel = index.find(*bank); kernel != index.end()) {
        is_entry[kernel->second] = true;
      }
    } else if (const auto attributes = After(section.name, ".nv.info.")) {
      const auto kernel = index.find(*attributes);
      if (kernel == index.end()) continue;
      if (Status status = TakeAttributes(section.bytes, info.kernels[kernel->second]);
          !status.ok()) {
        return status;
      }
    } else if (const auto shared = After(section.name, ".nv.shared.")) {
      const auto kernel = index.find(*shared);
      if (kernel != index.end()) info.kernels[kernel->second].static_shared_bytes = section.size;
    }
  }
  std::size_t at = 0;
  std::erase_if(info.kernels, [&](const CubinKernel&) { return !is_entry[at++]; });
  return info;
}

}  // namespace gpusched::device::ptx
