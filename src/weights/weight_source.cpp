#include "weights/weight_source.h"

#include "aten/low_rank.h"

#include <ATen/ATen.h>

#include <utility>

namespace sluice::weights {

WeightLease::WeightLease(const ParameterGroup& group, std::function<void()> give_back)
    : group_(&group), give_back_(std::move(give_back)) {}

WeightLease::WeightLease(WeightLease&& other) noexcept
    : group_(std::exchange(other.group_, nullptr)), give_back_(std::move(other.give_back_)) {}

WeightLease::~WeightLease() {
  if (!group_) return;
  for (const Parameter& parameter : group_->parameters) {
    *parameter.slot = at::Tensor();
    if (parameter.scales) *parameter.scales = at::Tensor();
    if (parameter.adapters) parameter.adapters->clear();
  }
  if (give_back_) give_back_();
}

}  // namespace sluice::weights
