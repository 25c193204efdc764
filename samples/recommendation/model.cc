// Loops that anyone can follow; speed does not matter here.
#include "model.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace recommendation {
namespace {

// Two sums of the same numbers in another order differ by a few units in the last place of their
// largest terms, which are of the order of 1.
constexpr float kRounding = 1e-4f;

using Hidden = std::array<float, kHidden>;

Hidden HiddenUnits(const Layers& layers, const float* item, const float* user) {
  Hidden hidden{};
  for (std::size_t unit = 0; unit < kHidden; ++unit) {
    float sum = layers.hidden[kEmbedding * kHidden + unit];
    for (std::size_t e = 0; e < kEmbedding; ++e) {
      sum += item[e] * user[e] * layers.hidden[e * kHidden + unit];
    }
    hidden[unit] = std::max(sum, 0.0f);
  }
  return hidden;
}

float ScoreOf(const Layers& layers, const Hidden& hidden) {
  float sum = layers.score[kHidden];
  for (std::size_t unit = 0; unit < kHidden; ++unit) sum += hidden[unit] * layers.score[unit];
  return sum;
}

// The same on every machine, which std's distributions are not.
class Uniform {
 public:
  explicit Uniform(std::uint32_t seed) : random_(seed) {}
  // In [-1, 1).
  float Next() { return static_cast<float>(random_() >> 8) * 0x1p-23f - 1.0f; }
  std::uint32_t Below(std::size_t bound) { return static_cast<std::uint32_t>(random_() % bound); }

 private:
  std::mt19937 random_;
};

std::vector<float> Uniforms(std::size_t count, float scale, Uniform& uniform) {
  std::vector<float> values(count);
  for (float& value : values) value = uniform.Next() * scale;
  return values;
}

bool AllClose(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= kRounding)) return false;
  }
  return true;
}

}  // namespace

Layers RandomLayers(std::uint32_t seed) {
  Uniform uniform(seed);
  // Weights of a size that keeps the units' values near 1.
  return {.hidden = Uniforms((kEmbedding + 1) * kHidden, 0.6f, uniform),
          .score = Uniforms(kHidden + 1, 0.3f, uniform)};
}

Catalogue RandomCatalogue(std::size_t items, std::size_t users, std::uint32_t seed) {
  Uniform uniform(seed);
  return {.items = Uniforms(items * kEmbedding, 1.0f, uniform),
          .users = Uniforms(users * kEmbedding, 1.0f, uniform)};
}

std::vector<std::uint32_t> RandomIds(std::size_t count, std::size_t below, std::uint32_t seed) {
  Uniform uniform(seed);
  std::vector<std::uint32_t> ids(count);
  for (std::uint32_t& id : ids) id = uniform.Below(below);
  return ids;
}

float Score(const Layers& layers, const float* item, const float* user) {
  return ScoreOf(layers, HiddenUnits(layers, item, user));
}

bool AreBest(const Best& best, const std::vector<std::uint32_t>& candidates,
             const Catalogue& catalogue, const Layers& layers, const float* user) {
  std::vector<float> scores;
  scores.reserve(candidates.size());
  for (const std::uint32_t id : candidates) {
    scores.push_back(Score(layers, catalogue.item(id), user));
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  for (std::size_t rank = 0; rank < kTop; ++rank) {
    if (best.ids[rank] >= catalogue.item_count()) return false;
    if (!(std::abs(best.scores[rank] - scores[rank]) <= kRounding)) return false;
    const float own = Score(layers, catalogue.item(best.ids[rank]), user);
    if (!(std::abs(best.scores[rank] - own) <= kRounding)) return false;
  }
  return true;
}

Batch RandomBatch(std::size_t rows, const Catalogue& catalogue, const Layers& taught,
                  std::uint32_t seed) {
  Batch batch{.items = RandomIds(rows, catalogue.item_count(), seed),
              .users = RandomIds(rows, catalogue.user_count(), seed + 1),
              .wanted = {}};
  for (std::size_t row = 0; row < rows; ++row) {
    batch.wanted.push_back(
        Score(taught, catalogue.item(batch.items[row]), catalogue.user(batch.users[row])));
  }
  return batch;
}

double Step(Layers& layers, const Batch& batch, const Catalogue& catalogue, float rate) {
  std::vector<double> hidden_gradient(layers.hidden.size()), score_gradient(layers.score.size());
  double squares = 0;
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    const float *item = catalogue.item(batch.items[row]), *user = catalogue.user(batch.users[row]);
    const Hidden hidden = HiddenUnits(layers, item, user);
    const double error = ScoreOf(layers, hidden) - batch.wanted[row];
    squares += error * error;
    for (std::size_t unit = 0; unit < kHidden; ++unit) {
      score_gradient[unit] += error * hidden[unit];
      if (hidden[unit] <= 0) continue;
      const double through = error * layers.score[unit];
      for (std::size_t e = 0; e < kEmbedding; ++e) {
        hidden_gradient[e * kHidden + unit] += through * item[e] * user[e];
      }
      hidden_gradient[kEmbedding * kHidden + unit] += through;
    }
    score_gradient[kHidden] += error;
  }
  const double each = rate / static_cast<double>(batch.rows());
  for (std::size_t i = 0; i < layers.hidden.size(); ++i) {
    layers.hidden[i] -= static_cast<float>(each * hidden_gradient[i]);
  }
  for (std::size_t i = 0; i < layers.score.size(); ++i) {
    layers.score[i] -= static_cast<float>(each * score_gradient[i]);
  }
  return squares / static_cast<double>(batch.rows());
}

bool AreClose(const Layers& a, const Layers& b) {
  return AllClose(a.hidden, b.hidden) && AllClose(a.score, b.score);
}

}  // namespace recommendation
