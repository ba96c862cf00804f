#pragma once
// A model owns no storage: it is a config plus named slots.  A ParameterGroup lists the slots that are used
// together (one transformer block, one encoder layer, a whole small component); a WeightSource fills them for
// the time of a lease. Slots are addresses of at::Tensor members: the struct that holds them must not move
// while the group exists.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace at {
class Tensor;
}

namespace sluice::weights {

struct Parameter {
  std::string name;  // as diffusers / transformers name it: "transformer_blocks.3.attn1.to_q.weight"
  std::vector<std::int64_t> shape;  // what the config says it must be
  at::Tensor* slot;
};

struct ParameterGroup {
  std::string name;  // "transformer_blocks.3", for messages and reports
  std::vector<Parameter> parameters;
};

// Declares parameters under a prefix: scope / "attn1" / "to_q" names "….attn1.to_q".
class ParameterScope {
 public:
  explicit ParameterScope(ParameterGroup& group, std::string prefix = {})
      : group_(&group), prefix_(std::move(prefix)) {}

  ParameterScope operator/(std::string_view name) const { return ParameterScope(*group_, join(name)); }
  ParameterScope operator/(std::int64_t index) const { return *this / std::to_string(index); }

  void add(std::string_view name, at::Tensor& slot, std::vector<std::int64_t> shape) const {
    group_->parameters.push_back({join(name), std::move(shape), &slot});
  }

 private:
  std::string join(std::string_view name) const {
    return prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
  }

  ParameterGroup* group_;
  std::string prefix_;
};

}  // namespace sluice::weights
