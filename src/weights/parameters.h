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

namespace sluice {
struct LowRank;
}

namespace sluice::weights {

// Rows of a matrix (or vector) that a group takes by themselves, so that a projection of gigabytes can be
// read and computed with in pieces.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;  // 0: all of them
};

struct Parameter {
  std::string name;  // as diffusers / transformers name it: "transformer_blocks.3.attn1.to_q.weight"
  std::vector<std::int64_t> shape;  // what the config says it must be, all rows
  at::Tensor* slot;
  // Where the scales of a quantized matrix go (kernels/matrix.h says what they are); nullptr: the parameter
  // must not be quantized.  Left undefined by a dense matrix.
  at::Tensor* scales = nullptr;
  RowRange rows = {};  // the slot gets these; of a quantized matrix whole blocks of its scales
  // Where adapters of the matrix go (aten/low_rank.h; LowRanks); nullptr: it can have none.
  std::vector<LowRank>* adapters = nullptr;
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

  // rows: only these.
  void add(std::string_view name, at::Tensor& slot, std::vector<std::int64_t> shape,
           RowRange rows = {}) const {
    group_->parameters.push_back({join(name), std::move(shape), &slot, nullptr, rows});
  }

  // A matrix that may be quantized, and have adapters where there is a place for them.
  void add_matrix(std::string_view name, at::Tensor& slot, at::Tensor& scales,
                  std::vector<std::int64_t> shape, RowRange rows = {},
                  std::vector<LowRank>* adapters = nullptr) const {
    group_->parameters.push_back({join(name), std::move(shape), &slot, &scales, rows, adapters});
  }

 private:
  std::string join(std::string_view name) const {
    return prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
  }

  ParameterGroup* group_;
  std::string prefix_;
};

}  // namespace sluice::weights
