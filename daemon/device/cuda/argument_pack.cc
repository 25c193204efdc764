// Copies values, turns buffers into addresses, and refuses what does not fit the layout.
#include "device/cuda/argument_pack.h"

#include <cstring>
#include <string>
#include <variant>

#include "device/refusals.h"
#include "gpusched/reasons.h"

namespace gpusched::device {
namespace {

Status Refuse(std::string_view why, const KernelInfo& info, std::size_t index,
              const std::string& what) {
  return Status(StatusCode::kInvalidArgument, why,
                "kernel '" + info.name + "': argument " + std::to_string(index) + " " + what);
}

}  // namespace

Status ArgumentPack::Fill(const CudaKernel& kernel, const KernelInfo& info,
                          const std::vector<Argument>& arguments, std::uint64_t alignment,
                          const FindPlace& place) {
  if (arguments.size() != kernel.sizes.size()) {
    return Status(StatusCode::kInvalidArgument, reason::kArgumentCount,
                  "kernel '" + info.name + "' takes " + std::to_string(kernel.sizes.size()) +
                      " arguments, not " + std::to_string(arguments.size()));
  }
  const std::size_t box_end = kernel.boxed ? kernel.box_offset + sizeof(ptx::BoxParameter) : 0;
  bytes_.assign(std::max<std::size_t>(kernel.parameter_bytes, box_end), std::byte{0});
  pointers_.clear();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Status status = Put(kernel, info, i, arguments[i], alignment, place);
    if (!status.ok()) return status;
    pointers_.push_back(bytes_.data() + kernel.offsets[i]);
  }
  if (kernel.boxed) pointers_.push_back(bytes_.data() + kernel.box_offset);
  return Status::Ok();
}

Status ArgumentPack::Put(const CudaKernel& kernel, const KernelInfo& info, std::size_t index,
                         const Argument& argument, std::uint64_t alignment,
                         const FindPlace& place) {
  std::byte* const at = bytes_.data() + kernel.offsets[index];
  const std::uint32_t size = kernel.sizes[index];
  if (const auto* value = std::get_if<ValueArgument>(&argument)) {
    if (value->size() != size) {
      return Refuse(
          reason::kArgumentSize, info, index,
          "is " + std::to_string(size) + " bytes wide, not " + std::to_string(value->size()));
    }
    std::memcpy(at, value->data(), size);
    return Status::Ok();
  }
  const auto* named = std::get_if<BufferArgument>(&argument);
  if (named == nullptr) {
    return Refuse(reason::kArgumentKind, info, index,
                  "is local memory; CUDA kernels take theirs with the launch, as dynamic bytes");
  }
  if (size != sizeof(void*)) {
    return Refuse(reason::kArgumentKind, info, index,
                  "is a value of " + std::to_string(size) + " bytes, not a buffer");
  }
  const Result<Place> found = place(named->buffer);
  if (!found.ok()) return found.status();
  if (named->offset >= found->bytes) return CheckRange(named->offset, 0, 1, 1, found->bytes);
  if (named->offset % alignment != 0) {
    return Refuse(reason::kMisaligned, info, index,
                  "begins at offset " + std::to_string(named->offset) +
                      " of its buffer; on this device it must be a multiple of " +
                      std::to_string(alignment));
  }
  const std::byte* const address = found->data + named->offset;
  std::memcpy(at, &address, sizeof address);
  return Status::Ok();
}

void** ArgumentPack::WithBox(const CudaKernel& kernel, const ptx::BoxParameter& box) {
  if (kernel.boxed) std::memcpy(bytes_.data() + kernel.box_offset, &box, sizeof box);
  return pointers_.data();
}

}  // namespace gpusched::device
