#include "weights/lora/lora_names.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace sluice::weights {
namespace {

TEST(LoraNames, know_the_parts_of_every_style) {
  struct Case {
    const char* tensor;
    LoraPart part;
  };
  for (const auto& [tensor, part] : std::vector<Case>{{"a.b.lora_A.weight", LoraPart::down},
                                                      {"a.b.lora_B.weight", LoraPart::up},
                                                      {"a.b.lora_A.default.weight", LoraPart::down},
                                                      {"a.b.lora_B.my_style.weight", LoraPart::up},
                                                      {"a.b.lora_down.weight", LoraPart::down},
                                                      {"a.b.lora_up.weight", LoraPart::up},
                                                      {"a.b.lora.down.weight", LoraPart::down},
                                                      {"a.b.lora.up.weight", LoraPart::up},
                                                      {"a.b.alpha", LoraPart::alpha}}) {
    const auto name = parse_lora_name(tensor);

    ASSERT_TRUE(name) << tensor;
    EXPECT_EQ(name->layer, "a.b") << tensor;
    EXPECT_EQ(name->part, part) << tensor;
  }
}

TEST(LoraNames, are_not_seen_in_other_tensors) {
  for (const char* tensor : {"a.b.weight", "a.b.bias", "lora_A", "weight", "", "a.lora_A.x.y.weight"})
    EXPECT_FALSE(parse_lora_name(tensor)) << tensor;
}

TEST(LoraNames, tell_other_kinds_of_adapters) {
  struct Case {
    const char* tensor;
    const char* kind;
  };
  for (const auto& [tensor, kind] : std::vector<Case>{{"a.dora_scale", "DoRA"},
                                                      {"a.lora_magnitude_vector.weight", "DoRA"},
                                                      {"a.hada_w1_a", "LoHa"},
                                                      {"a.lokr_w2", "LoKr"},
                                                      {"a.lora_mid.weight", "a convolution's LoRA"},
                                                      {"a.diff", "a difference of whole matrices"},
                                                      {"a.diff_b", "a difference of biases"},
                                                      {"a.lora_B.bias", "a difference of biases"},
                                                      {"a.different.weight", ""},
                                                      {"a.lora_B.weight", ""},
                                                      {"a.alpha", ""}})
    EXPECT_EQ(other_adapter_kind(tensor), kind) << tensor;
}

LoraTargets targets() {
  return {.matrices = {{"blocks.0.attn.to_q.weight", {6, 4}},
                       {"time_embed.linear.weight", {9, 5}},
                       {"a_b.c.weight", {1, 1}},
                       {"a.b_c.weight", {1, 1}}},
          .other_names = {{"blocks.0.attn.to_q.weight", "blocks.0.attn.to_q.weight"},
                          {"adaln_single.linear.weight", "time_embed.linear.weight"}}};
}

TEST(LoraLayers, finds_a_matrix_under_every_prefix_and_both_names) {
  const LoraTargets model = targets();
  const LoraLayers layers(model);
  for (const char* prefix :
       {"", "transformer.", "diffusion_model.", "model.diffusion_model.", "base_model.model.",
        "base_model.model.transformer.", "base_model.model.diffusion_model."}) {
    const std::string before = prefix;
    EXPECT_EQ(layers.find(before + "blocks.0.attn.to_q"), "blocks.0.attn.to_q.weight") << prefix;
    EXPECT_EQ(layers.find(before + "time_embed.linear"), "time_embed.linear.weight") << prefix;
    EXPECT_EQ(layers.find(before + "adaln_single.linear"), "time_embed.linear.weight") << prefix;
  }
}

TEST(LoraLayers, finds_a_matrix_by_the_flat_name_of_either_style) {
  const LoraTargets model = targets();
  const LoraLayers layers(model);
  for (const char* prefix : {"lora_unet_", "lora_transformer_", "lycoris_"}) {
    const std::string before = prefix;
    EXPECT_EQ(layers.find(before + "blocks_0_attn_to_q"), "blocks.0.attn.to_q.weight") << prefix;
    EXPECT_EQ(layers.find(before + "adaln_single_linear"), "time_embed.linear.weight") << prefix;
    EXPECT_EQ(layers.find(before + "time_embed_linear"), "time_embed.linear.weight") << prefix;
  }
}

TEST(LoraLayers, finds_nothing_for_names_that_mean_no_matrix_or_two) {
  const LoraTargets model = targets();
  const LoraLayers layers(model);

  EXPECT_EQ(layers.find("blocks.1.attn.to_q"), "");
  EXPECT_EQ(layers.find("text_encoder.blocks.0.attn.to_q"), "");
  EXPECT_EQ(layers.find("lora_te_blocks_0_attn_to_q"), "");
  EXPECT_EQ(layers.find("lora_unet_a_b_c"), "");
  EXPECT_EQ(layers.find("a_b.c"), "a_b.c.weight");
  EXPECT_EQ(layers.find(""), "");
}

}  // namespace
}  // namespace sluice::weights
