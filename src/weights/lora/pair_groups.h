#pragma once
// An adapter's pairs as groups of parameters beside those of the model, so that every WeightSource can lease
// them: a group's slots are where the tensors of its pairs are lent to.

#include "weights/lora/lora_file.h"
#include "weights/parameters.h"

#include <ATen/core/Tensor.h>

#include <deque>
#include <map>
#include <span>
#include <vector>

namespace sluice::weights {

class PairGroups {
 public:
  // Error(internal) where a pair is for a matrix that no group of `order` has, or that can have no adapter.
  PairGroups(const LoraFile& file, std::span<const ParameterGroup* const> order);
  PairGroups(const PairGroups&) = delete;  // slots are addresses
  PairGroups& operator=(const PairGroups&) = delete;

  // Those with pairs, in the model's order.
  std::vector<const ParameterGroup*> groups() const;
  const ParameterGroup* beside(const ParameterGroup& base) const;  // nullptr: it has no pairs

  // Adds what the group beside `base`, while it is leased, has for its matrices.
  void lend_to(const ParameterGroup& base) const;

 private:
  struct Pair {
    const Parameter* matrix = nullptr;
    float factor = 1;
    at::Tensor down, up;
  };
  struct Group {
    ParameterGroup parameters;
    std::deque<Pair> pairs;
  };

  void add(const LoraPair& pair, const Parameter& matrix, Group& group);

  std::deque<Group> groups_;
  std::map<const ParameterGroup*, const Group*> beside_;
};

}  // namespace sluice::weights
