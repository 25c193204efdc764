// Rates change at instants, and are integrated over what was charged.
#include "sim/share_meter.h"

#include <algorithm>
#include <cmath>

namespace gpusched::sim {

void ShareMeter::SetRule(Time at, ShareRule rule) {
  if (rule == rule_) return;
  rule_ = rule;
  Moved(at);
}

void ShareMeter::Open(Time at, std::uint32_t slot, const Share& share) {
  if (slot >= members_.size()) members_.resize(slot + 1);
  members_[slot] = Member{};
  members_[slot].fluid.share = share;
  members_[slot].open = true;
  for (Stretch& stretch : stretches_) {
    if (slot < stretch.rates.size()) stretch.rates[slot] = 0;  // its predecessor's in this slot
  }
  if (share.strict) Moved(at);
}

void ShareMeter::Change(Time at, std::uint32_t slot, const Share& share) {
  members_[slot].fluid.share = share;
  Moved(at);
}

void ShareMeter::SetWork(Time at, std::uint32_t slot, bool has_work) {
  Member& member = members_[slot];
  if (member.fluid.has_work == has_work) return;
  member.fluid.has_work = has_work;
  Moved(at);
}

void ShareMeter::Close(Time at, std::uint32_t slot) {
  Member& leaving = members_[slot];
  leaving.open = false;
  leaving.fluid.has_work = false;
  const double lag = leaving.asked - leaving.got;
  Moved(at);
  for (Member& member : members_) {
    if (!member.open) continue;
    member.asked += lag * member.fluid.rate;
    member.spread += lag * member.fluid.rate;
  }
}

void ShareMeter::Moved(Time at) {
  open_.clear();
  for (Member& member : members_) {
    if (member.open) open_.push_back(&member.fluid);
  }
  SetFluidRates(rule_, open_);
  if (stretches_.empty() || stretches_.back().from != at) stretches_.push_back({at, {}});
  std::vector<double>& rates = stretches_.back().rates;
  rates.assign(members_.size(), 0);
  for (std::size_t slot = 0; slot < members_.size(); ++slot) {
    if (members_[slot].open) rates[slot] = members_[slot].fluid.rate;
  }
}

void ShareMeter::Pass(Time from, Time to) {
  from = std::max(from, passed_to_);
  passed_to_ = std::max(passed_to_, to);
  while (stretches_.size() > 1 && stretches_[1].from <= from) stretches_.pop_front();
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    const Time begin = std::max(from, stretches_[i].from);
    const Time end = i + 1 < stretches_.size() ? std::min(to, stretches_[i + 1].from) : to;
    if (end <= begin) continue;
    const auto passed = static_cast<double>((end - begin).count());
    const std::vector<double>& rates = stretches_[i].rates;
    for (std::size_t slot = 0; slot < rates.size(); ++slot) {
      members_[slot].asked += rates[slot] * passed;
    }
  }
}

double ShareMeter::FurthestFromPar() const {
  double lags = 0, rates = 0, furthest = 0;
  for (const Member& member : members_) {
    if (!member.open || !member.fluid.has_work) continue;
    lags += member.asked - member.got;
    rates += member.fluid.rate;
  }
  if (rates <= 0) return 0;
  for (const Member& member : members_) {
    if (!member.open || !member.fluid.has_work) continue;
    const double par = lags * member.fluid.rate / rates;
    furthest = std::max(furthest, std::abs(member.asked - member.got - par));
  }
  return furthest;
}

}  // namespace gpusched::sim
