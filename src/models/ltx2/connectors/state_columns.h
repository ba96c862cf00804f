#pragma once
// The order in which a projection's columns are summed.  A token's 49 states lie side by side in them (column
// = channel · states + state).  Sums run over shares of neighbouring states, one share after the other, so
// that a sum does not depend on how many states are held at a time.

#include "models/ltx2/connectors/connectors_config.h"

#include <sluice/units.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sluice::ltx2 {

struct FeatureLimits {
  // Normed states held at once; never less than one share of them.  All of them fit for up to 356 tokens (of
  // all prompts together) at the published sizes in f32, and the projections are read once; 1024 tokens take
  // 735 MiB, or four passes over the projections.
  Bytes held_states = MiB(256);
};

// What `tokens` tokens, of all prompts together, come to.
struct StateShares {
  std::int64_t states = 0;
  std::int64_t share = 0;   // states in each share but the last
  std::int64_t shares = 0;  // in all
  std::int64_t held = 0;    // shares held at a time
  std::int64_t passes = 0;  // over the projections
  Bytes held_bytes = 0;     // what that takes

  std::int64_t states_of(std::int64_t index) const;  // in share `index`
};

StateShares plan_shares(const ConnectorsConfig& config, std::int64_t tokens, at::ScalarType dtype,
                        const FeatureLimits& limits);

// rows: [rows, channels · states], contiguous, of 2 or 4 bytes an element.  Share `index` of every row goes
// to a contiguous [rows, channels · states of the share], which is how the states are held.
std::vector<at::Tensor> split_columns(const at::Tensor& rows, const StateShares& plan, std::int64_t first,
                                      std::int64_t count, at::Tensor& memory);

}  // namespace sluice::ltx2
