// The classifier in plain C++: made-up data with a rule behind it, and a step as the kernels take
// it.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "trainer.h"

namespace team {
namespace {

using PerClass = std::array<double, kClasses>;

PerClass Logits(const float* row, const std::vector<float>& weights) {
  PerClass logits{};
  for (std::size_t f = 0; f < kFeatures; ++f) {
    for (std::size_t c = 0; c < kClasses; ++c) {
      logits[c] += static_cast<double>(row[f]) * weights[f * kClasses + c];
    }
  }
  return logits;
}

}  // namespace

Data RandomData(std::size_t rows, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto uniform = [&random] { return static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f; };
  std::vector<float> rule(kWeights);
  for (float& weight : rule) weight = uniform();
  Data data{.rows = std::vector<float>(rows * kFeatures), .labels = {}};
  data.labels.reserve(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    float* row = data.rows.data() + i * kFeatures;
    for (std::size_t f = 0; f + 1 < kFeatures; ++f) row[f] = uniform();
    row[kFeatures - 1] = 1.0f;
    const PerClass logits = Logits(row, rule);
    data.labels.push_back(static_cast<std::uint32_t>(
        std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  return data;
}

double Step(std::vector<float>& weights, const Data& data, std::size_t first, std::size_t batch,
            float rate) {
  std::vector<double> gradient(kWeights);
  double losses = 0;
  for (std::size_t i = first; i < first + batch; ++i) {
    const float* row = data.rows.data() + i * kFeatures;
    PerClass chance = Logits(row, weights);
    const double most = *std::max_element(chance.begin(), chance.end());
    double sum = 0;
    for (double& each : chance) sum += each = std::exp(each - most);
    losses += std::log(sum) - std::log(chance[data.labels[i]]);
    for (std::size_t c = 0; c < kClasses; ++c) {
      const double error = chance[c] / sum - (c == data.labels[i] ? 1 : 0);
      for (std::size_t f = 0; f < kFeatures; ++f) gradient[f * kClasses + c] += error * row[f];
    }
  }
  for (std::size_t i = 0; i < kWeights; ++i) {
    weights[i] -= static_cast<float>(rate / static_cast<double>(batch) * gradient[i]);
  }
  return losses / static_cast<double>(batch);
}

}  // namespace team
