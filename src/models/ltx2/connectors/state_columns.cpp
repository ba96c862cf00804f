#include "models/ltx2/connectors/state_columns.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kShares = 7;  // of the published 49 states, seven each

template <typename Word>
struct Share {
  std::int64_t first, states;
  Word* to;
};

template <typename Word>
void split_row(const Word* from, std::int64_t row, std::int64_t channels, std::int64_t states,
               const std::vector<Share<Word>>& shares) {
  for (const Share<Word>& share : shares) {
    const Word* source = from + row * channels * states + share.first;
    Word* to = share.to + row * channels * share.states;
    for (std::int64_t channel = 0; channel < channels; ++channel, source += states, to += share.states) {
      for (std::int64_t state = 0; state < share.states; ++state) to[state] = source[state];
    }
  }
}

template <typename Word>
void split_rows(const at::Tensor& rows, const StateShares& plan, std::int64_t first,
                const std::vector<at::Tensor>& to) {
  std::vector<Share<Word>> shares;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::int64_t index = first + static_cast<std::int64_t>(i);
    shares.push_back({.first = index * plan.share,
                      .states = plan.states_of(index),
                      .to = static_cast<Word*>(to[i].mutable_data_ptr())});
  }
  const auto* from = static_cast<const Word*>(rows.const_data_ptr());
  const std::int64_t channels = rows.size(1) / plan.states;
  at::parallel_for(0, rows.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) split_row(from, row, channels, plan.states, shares);
  });
}

}  // namespace

std::int64_t StateShares::states_of(std::int64_t index) const {
  return std::min(share, states - index * share);
}

StateShares plan_shares(const ConnectorsConfig& config, std::int64_t tokens, at::ScalarType dtype,
                        const FeatureLimits& limits) {
  StateShares plan{.states = config.text_proj_in_factor};
  plan.share = (plan.states + kShares - 1) / kShares;
  plan.shares = (plan.states + plan.share - 1) / plan.share;
  const Bytes share_bytes =
      static_cast<Bytes>(std::max<std::int64_t>(tokens, 1) * config.caption_channels * plan.share) *
      elementSize(dtype);
  const auto fitting =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(limits.held_states / share_bytes), 1, plan.shares);
  plan.passes = (plan.shares + fitting - 1) / fitting;
  plan.held = (plan.shares + plan.passes - 1) / plan.passes;
  plan.held_bytes = static_cast<Bytes>(plan.held) * share_bytes;
  return plan;
}

std::vector<at::Tensor> split_columns(const at::Tensor& rows, const StateShares& plan, std::int64_t first,
                                      std::int64_t count, at::Tensor& memory) {
  const std::int64_t channels = rows.size(1) / plan.states;
  std::vector<at::Tensor> shares;
  std::int64_t at = 0;
  for (std::int64_t index = first; index < first + count; ++index) {
    const std::int64_t columns = channels * plan.states_of(index), elements = rows.size(0) * columns;
    shares.push_back(memory.narrow(0, at, elements).view({rows.size(0), columns}));
    at += elements;
  }
  if (rows.element_size() == 2) {
    split_rows<std::uint16_t>(rows, plan, first, shares);
  } else {
    split_rows<std::uint32_t>(rows, plan, first, shares);
  }
  return shares;
}

}  // namespace sluice::ltx2
