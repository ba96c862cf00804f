#pragma once
// Adapters of one rank for every matrix that can have one, made up, in memory, beside the weights of a
// source.

#include "aten/low_rank.h"
#include "weights/weight_source.h"

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <utility>

namespace sluice::bench {

class RandomAdapters final : public weights::WeightSource {
 public:
  RandomAdapters(std::unique_ptr<weights::WeightSource> base, std::int64_t rank,
                 std::span<const weights::ParameterGroup* const> groups)
      : base_(std::move(base)) {
    for (const weights::ParameterGroup* group : groups) {
      for (const weights::Parameter& matrix : group->parameters) {
        if (matrix.adapters) pairs_.emplace(&matrix, pair(matrix.shape, rank));
      }
    }
  }

  weights::WeightLease acquire(const weights::ParameterGroup& group) override {
    weights::WeightLease lease = base_->acquire(group);
    for (const weights::Parameter& matrix : group.parameters) {
      if (matrix.adapters) *matrix.adapters = {pairs_.at(&matrix)};
    }
    return lease;
  }

  at::Tensor rows(const weights::Parameter& table, std::span<const std::int64_t> ids) override {
    return base_->rows(table, ids);
  }
  void check() const override { base_->check(); }
  Bytes bytes_read() const override { return base_->bytes_read(); }

 private:
  static LowRank pair(const std::vector<std::int64_t>& matrix, std::int64_t rank) {
    return {.down = (at::randn({rank, matrix[1]}) / 64).to(at::kBFloat16),
            .up = (at::randn({matrix[0], rank}) / 64).to(at::kBFloat16)};
  }

  std::unique_ptr<weights::WeightSource> base_;
  std::map<const weights::Parameter*, LowRank> pairs_;
};

}  // namespace sluice::bench
