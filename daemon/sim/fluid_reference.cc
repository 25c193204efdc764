// Water-filling by sorting.
#include "sim/fluid_reference.h"

#include <algorithm>

namespace gpusched::sim {
namespace {

constexpr double kWhole = static_cast<double>(kWholeDevice);

struct Terms {
  double weight, min, max;
  double At(double level) const { return std::clamp(weight * level, min, max); }
};

Terms TermsOf(ShareRule rule, const Share& share) {
  const bool weighted = rule == ShareRule::kWeighted;
  return {.weight = weighted ? static_cast<double>(share.weight) : 1,
          .min = weighted || share.strict ? static_cast<double>(share.min) / kWhole : 0,
          .max = static_cast<double>(share.max) / kWhole};
}

// The level at which the rates sum to `there_is`. The sum grows with the level in straight pieces;
// they join where somebody leaves its min or reaches its max.
double Level(const std::vector<Terms>& all, double there_is) {
  struct Joint {
    double level, slope;  // the slope of the sum changes by so much here
  };
  std::vector<Joint> joints;
  double sum = 0;
  for (const Terms& terms : all) {
    sum += terms.min;
    joints.push_back({terms.min / terms.weight, terms.weight});
    joints.push_back({terms.max / terms.weight, -terms.weight});
  }
  std::sort(joints.begin(), joints.end(),
            [](const Joint& a, const Joint& b) { return a.level < b.level; });
  double level = 0, slope = 0;
  for (const Joint& joint : joints) {
    const double sum_there = sum + slope * (joint.level - level);
    if (sum_there >= there_is && slope > 0) return level + (there_is - sum) / slope;
    sum = sum_there;
    level = joint.level;
    slope += joint.slope;
  }
  return level;  // all at their max: the rest is nobody's
}

}  // namespace

void SetFluidRates(ShareRule rule, std::vector<FluidMember*>& members) {
  std::vector<Terms> terms;
  double there_is = 1;
  for (FluidMember* member : members) {
    member->rate = 0;
    if (member->has_work) terms.push_back(TermsOf(rule, member->share));
    if (!member->has_work && member->share.strict) {
      there_is -= static_cast<double>(member->share.min) / kWhole;
    }
  }
  if (rule == ShareRule::kNone || terms.empty()) return;
  const double level = Level(terms, there_is);
  for (FluidMember* member : members) {
    if (member->has_work) member->rate = TermsOf(rule, member->share).At(level);
  }
}

}  // namespace gpusched::sim
