// The recommendation model in plain C++: what the kernels compute, for data and for checking.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace recommendation {

// The sizes that layers.cl is written for.
inline constexpr std::size_t kEmbedding = 32, kHidden = 64, kTop = 8, kTopBlock = 256;

struct Layers {
  std::vector<float> hidden;  // kEmbedding rows of kHidden, then their biases
  std::vector<float> score;   // kHidden, then the bias
};

struct Catalogue {
  std::vector<float> items, users;  // rows of kEmbedding

  std::size_t item_count() const { return items.size() / kEmbedding; }
  std::size_t user_count() const { return users.size() / kEmbedding; }
  const float* item(std::size_t id) const { return items.data() + id * kEmbedding; }
  const float* user(std::size_t id) const { return users.data() + id * kEmbedding; }
};

// The same for every run: seeded.
Layers RandomLayers(std::uint32_t seed);
Catalogue RandomCatalogue(std::size_t items, std::size_t users, std::uint32_t seed);
std::vector<std::uint32_t> RandomIds(std::size_t count, std::size_t below, std::uint32_t seed);

float Score(const Layers& layers, const float* item, const float* user);

// What the best candidates of a request are, best first.
struct Best {
  std::array<std::uint32_t, kTop> ids{};
  std::array<float, kTop> scores{};
};

// Whether `best` are the kTop best of the candidates, up to rounding: sums may be taken in another
// order, and then candidates that are as good as equal may change places.
bool AreBest(const Best& best, const std::vector<std::uint32_t>& candidates,
             const Catalogue& catalogue, const Layers& layers, const float* user);

// Pairs of an item and a user with the score wanted of them.
struct Batch {
  std::vector<std::uint32_t> items, users;
  std::vector<float> wanted;

  std::size_t rows() const { return wanted.size(); }
};
// Wanted is what the layers `taught` give.
Batch RandomBatch(std::size_t rows, const Catalogue& catalogue, const Layers& taught,
                  std::uint32_t seed);

// One step down the gradient of half the mean squared error; gives the mean squared error before.
double Step(Layers& layers, const Batch& batch, const Catalogue& catalogue, float rate);

// Whether two sets of weights are equal up to rounding.
bool AreClose(const Layers& a, const Layers& b);

}  // namespace recommendation
