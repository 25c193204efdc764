// A kernel that computes for as long as it is told: the work of the promises on OpenCL.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "support/random.h"

namespace gpusched::bench {

inline constexpr std::uint32_t kSpinBlock = 64;
// Each thread turns a number of its own `rounds` times; nothing is shared, so a block takes the
// same time wherever it runs.
inline constexpr const char* kSpinSource = R"(
kernel void spin(global float* x, uint rounds) {
  const size_t i = get_global_id(0);
  float value = x[i];
  for (uint round = 0; round < rounds; ++round) value = value * 0.999f + 0.5f;
  x[i] = value;
}
)";

// Launches of so many blocks and rounds: a whole time to be had is rounds x a factor of the
// machine.
struct Spin {
  std::uint32_t blocks = 1, rounds = 1;
};

// A chain of kernels as an inference has them: between 5 and 500 us each, evenly by magnitude.
// `rounds_per_us`: of a launch of kChainBlocks blocks.
inline constexpr std::uint32_t kChainBlocks = 16;
inline constexpr int kChainKernels = 175;
inline std::vector<Spin> ChainOfSpins(double rounds_per_us) {
  constexpr std::array kHalfDecades{5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0};
  Random random(175);
  std::vector<Spin> chain;
  for (int i = 0; i < kChainKernels; ++i) {
    const auto step = random.Below(kHalfDecades.size() - 1);
    const double low = kHalfDecades[step], high = kHalfDecades[step + 1];
    const double us = low + (high - low) * random.Fraction();
    const auto rounds = static_cast<std::uint32_t>(us * rounds_per_us);
    chain.push_back({.blocks = kChainBlocks, .rounds = rounds > 0 ? rounds : 1});
  }
  return chain;
}

}  // namespace gpusched::bench
