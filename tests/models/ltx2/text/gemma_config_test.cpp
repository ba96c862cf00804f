#include "models/ltx2/text/gemma_config.h"

#include "support/throws_error.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace sluice::ltx2 {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const json kOldForm = json::parse(R"({
  "model_type": "gemma3_text", "vocab_size": 100, "hidden_size": 24, "intermediate_size": 40,
  "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
  "query_pre_attn_scalar": 16, "rms_norm_eps": 1e-5, "sliding_window": 5, "sliding_window_pattern": 3,
  "rope_theta": 500000.0, "rope_local_base_freq": 9000.0,
  "rope_scaling": {"rope_type": "linear", "factor": 4.0}})");

json new_form() {
  json config = kOldForm;
  for (const char* key : {"sliding_window_pattern", "rope_theta", "rope_local_base_freq", "rope_scaling"})
    config.erase(key);
  config["layer_types"] = {"sliding_attention", "sliding_attention", "full_attention", "sliding_attention"};
  config["rope_parameters"] = json::parse(R"({
    "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 500000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 9000.0}})");
  return config;
}

json changed(json config, const char* pointer, json value) {
  config[json::json_pointer(pointer)] = std::move(value);
  return config;
}

TEST(GemmaConfig, reads_every_key_of_the_older_form) {
  GemmaConfig config = GemmaConfig::parse(kOldForm, "config.json");

  EXPECT_EQ(config.vocab_size, 100);
  EXPECT_EQ(config.hidden_size, 24);
  EXPECT_EQ(config.intermediate_size, 40);
  EXPECT_EQ(config.num_attention_heads, 4);
  EXPECT_EQ(config.num_key_value_heads, 2);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.query_pre_attn_scalar, 16);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.sliding_window, 5);
  EXPECT_EQ(config.full_rope, (GemmaRope{.theta = 500000, .factor = 4}));
  EXPECT_EQ(config.sliding_rope, (GemmaRope{.theta = 9000, .factor = 1}));
  EXPECT_THAT(config.layers, ElementsAre(GemmaLayerKind::sliding, GemmaLayerKind::sliding,
                                         GemmaLayerKind::full, GemmaLayerKind::sliding));
  EXPECT_EQ(config.states(), 5);
}

TEST(GemmaConfig, means_the_same_in_the_newer_form) {
  EXPECT_EQ(GemmaConfig::parse(new_form(), "config.json"), GemmaConfig::parse(kOldForm, "config.json"));
}

TEST(GemmaConfig, means_the_same_under_text_config) {
  json nested = {{"model_type", "gemma3"}, {"text_config", new_form()}, {"vision_config", json::object()}};

  EXPECT_EQ(GemmaConfig::parse(nested, "config.json"), GemmaConfig::parse(kOldForm, "config.json"));
}

TEST(GemmaConfig, means_the_same_with_both_forms_in_one_file) {
  json both = new_form();
  both.update(kOldForm);

  EXPECT_EQ(GemmaConfig::parse(both, "config.json"), GemmaConfig::parse(kOldForm, "config.json"));
}

TEST(GemmaConfig, takes_sizes_that_are_listed_for_each_layer_if_they_are_equal) {
  json listed = changed(kOldForm, "/head_dim", {8, 8, 8, 8});

  EXPECT_EQ(GemmaConfig::parse(listed, "config.json"), GemmaConfig::parse(kOldForm, "config.json"));
  EXPECT_THAT(
      [&] {
        GemmaConfig::parse(changed(kOldForm, "/head_dim", {8, 8, 16, 8}), "config.json");
      },
      test::ThrowsError(ErrorKind::bad_input, HasSubstr("'head_dim'")));
}

TEST(GemmaConfig, fills_in_what_the_published_12b_file_leaves_out) {
  GemmaConfig config = GemmaConfig::parse(json::parse(R"({"model_type": "gemma3", "text_config": {
      "hidden_size": 3840, "intermediate_size": 15360, "model_type": "gemma3_text", "num_attention_heads": 16,
      "num_hidden_layers": 48, "num_key_value_heads": 8, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
      "sliding_window": 1024}})"),
                                          "config.json");

  EXPECT_EQ(config.vocab_size, 262208);
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_EQ(config.query_pre_attn_scalar, 256);
  EXPECT_EQ(config.full_rope, (GemmaRope{.theta = 1e6, .factor = 8}));
  EXPECT_EQ(config.sliding_rope, (GemmaRope{.theta = 1e4, .factor = 1}));
  EXPECT_EQ(config.layers[4], GemmaLayerKind::sliding);
  EXPECT_EQ(config.layers[5], GemmaLayerKind::full);
  EXPECT_EQ(config.layers[47], GemmaLayerKind::full);
}

struct Refused {
  const char* pointer;
  json value;
  const char* named;
};

class GemmaConfigRefusal : public testing::TestWithParam<Refused> {};

TEST_P(GemmaConfigRefusal, names_file_and_key) {
  const Refused& refused = GetParam();
  json config = new_form();
  if (std::string_view(refused.pointer).starts_with("/rope_scaling")) config = kOldForm;

  EXPECT_THAT(
      [&] { GemmaConfig::parse(changed(config, refused.pointer, refused.value), "dir/config.json"); },
      test::ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("dir/config.json"), HasSubstr(refused.named))));
}

INSTANTIATE_TEST_SUITE_P(
    , GemmaConfigRefusal,
    testing::Values(Refused{"/model_type", "gemma4", "'model_type' is 'gemma4'"},
                    Refused{"/rope_scaling/rope_type", "yarn", "rope_scaling: 'rope_type' is 'yarn'"},
                    Refused{"/rope_parameters/full_attention/rope_type", "llama3",
                            "rope_parameters.full_attention: 'rope_type' is 'llama3'"},
                    Refused{"/rope_parameters/sliding_attention/rope_type", "dynamic",
                            "rope_parameters.sliding_attention: 'rope_type' is 'dynamic'"},
                    Refused{"/rope_parameters/rope_type", "default", "rope_parameters: 'rope_type'"},
                    Refused{"/rope_parameters/full_attention/factor", nullptr, "'factor'"},
                    Refused{"/rope_parameters/full_attention/partial_rotary_factor", 0.5,
                            "'partial_rotary_factor'"},
                    Refused{"/attn_logit_softcapping", 50.0, "'attn_logit_softcapping'"},
                    Refused{"/final_logit_softcapping", 30.0, "'final_logit_softcapping'"},
                    Refused{"/hidden_activation", "silu", "'hidden_activation' is 'silu'"},
                    Refused{"/use_bidirectional_attention", true, "'use_bidirectional_attention'"},
                    Refused{"/attention_bias", true, "'attention_bias'"},
                    Refused{"/layer_types/0", "chunked_attention", "'layer_types' holds 'chunked_attention'"},
                    Refused{"/num_hidden_layers", 5, "'layer_types' has 4 entries for 5 layers"},
                    Refused{"/num_key_value_heads", 3, "'num_key_value_heads'"},
                    Refused{"/global_head_dim", 16, "'global_head_dim'"},
                    Refused{"/hidden_size", 0, "'hidden_size' is 0"},
                    Refused{"/hidden_size", 24.5, "'hidden_size' is 24.5"},
                    Refused{"/vocab_size", "many", "'vocab_size' is \"many\""}));

}  // namespace
}  // namespace sluice::ltx2
