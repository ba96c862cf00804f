#include "models/ltx2/files/lora_targets.h"

#include "aten/low_rank.h"

#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>

#include <vector>

namespace sluice::ltx2 {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(LoraTargets, are_the_matrices_that_can_have_adapters_under_both_names) {
  at::Tensor values, scales, table;
  LowRanks adapters;
  weights::ParameterGroup entrance{"entrance", {}}, block{"block", {}};
  const weights::ParameterScope first(entrance), second(block, "transformer_blocks.0");
  first.add_matrix("proj_in.weight", values, scales, {8, 4}, {}, &adapters);
  first.add("proj_in.bias", values, {8});
  first.add_matrix("av_cross_attn_video_scale_shift.linear.weight", values, scales, {32, 8}, {}, &adapters);
  second.add_matrix("attn1.to_q.weight", values, scales, {8, 8}, {}, &adapters);
  second.add_matrix("attn1.other.weight", values, scales, {8, 8});
  second.add("scale_shift_table", table, {6, 8});
  const std::vector<const weights::ParameterGroup*> groups = {&entrance, &block};

  const weights::LoraTargets targets = lora_targets(groups);

  EXPECT_THAT(targets.matrices,
              ElementsAre(Pair("av_cross_attn_video_scale_shift.linear.weight", ElementsAre(32, 8)),
                          Pair("proj_in.weight", ElementsAre(8, 4)),
                          Pair("transformer_blocks.0.attn1.to_q.weight", ElementsAre(8, 8))));
  EXPECT_THAT(targets.other_names, ElementsAre(Pair("av_ca_video_scale_shift_adaln_single.linear.weight",
                                                    "av_cross_attn_video_scale_shift.linear.weight"),
                                               Pair("patchify_proj.weight", "proj_in.weight"),
                                               Pair("transformer_blocks.0.attn1.to_q.weight",
                                                    "transformer_blocks.0.attn1.to_q.weight")));
}

}  // namespace
}  // namespace sluice::ltx2
