// Which of a module's images suit a GPU, best first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"
#include "gpusched/status.h"

namespace gpusched::device {

struct Architecture {
  std::uint32_t sm = 0;  // 75, 90, 100
};

struct UsableImage {
  enum class Kind : std::uint8_t { kPtx, kElf };
  Kind kind = Kind::kPtx;
  std::uint32_t sm = 0;
  bool exact = false;  // for this architecture alone: "sm_90a"
  std::string bytes;
  std::string from;  // "image 1 (a fat binary's PTX for sm_75)"
};

struct ImageChoice {
  // PTX before machine code, since only PTX can be cut; among each the nearest to the device.
  std::vector<UsableImage> usable;
  std::string passed_over;  // what is not usable, and why, in words
  Status broken;            // the first image that is none
};

// CUDA C++ among the images is compiled where NVRTC is installed, which takes a second or so.
ImageChoice ChooseImages(const std::vector<Image>& images, Architecture architecture);

}  // namespace gpusched::device
