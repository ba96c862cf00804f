#include "models/ltx2/connectors/connectors_config.h"

#include "support/throws_error.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace sluice::ltx2 {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

const json kConfig = json::parse(R"({
  "caption_channels": 12, "text_proj_in_factor": 4,
  "video_connector_num_attention_heads": 4, "video_connector_attention_head_dim": 8,
  "video_connector_num_layers": 3, "video_connector_num_learnable_registers": 16, "video_gated_attn": true,
  "audio_connector_num_attention_heads": 2, "audio_connector_attention_head_dim": 6,
  "audio_connector_num_layers": 1, "audio_connector_num_learnable_registers": null, "audio_gated_attn": false,
  "connector_rope_base_seq_len": 512, "rope_theta": 9000.0, "rope_double_precision": false,
  "rope_type": "split", "per_modality_projections": true, "video_hidden_dim": 32, "audio_hidden_dim": 12,
  "proj_bias": true})");

json changed(const char* key, json value) {
  json config = kConfig;
  config[key] = std::move(value);
  return config;
}

TEST(ConnectorsConfig, reads_every_key) {
  ConnectorsConfig config = ConnectorsConfig::parse(kConfig, "config.json");

  EXPECT_EQ(config.feature_columns(), 48);
  EXPECT_TRUE(config.per_modality_projections);
  EXPECT_TRUE(config.proj_bias);
  EXPECT_EQ(config.video.num_attention_heads, 4);
  EXPECT_EQ(config.video.width(), 32);
  EXPECT_EQ(config.video.num_layers, 3);
  EXPECT_EQ(config.video.num_learnable_registers, 16);
  EXPECT_TRUE(config.video.gated_attention);
  EXPECT_EQ(config.video.rope_base_seq_len, 512);
  EXPECT_EQ(config.video.rope_theta, 9000.0);
  EXPECT_FALSE(config.video.rope_double_precision);
  EXPECT_EQ(config.video.rope_layout, nn::RopeLayout::split);
  EXPECT_EQ(config.audio.width(), 12);
  EXPECT_EQ(config.audio.num_layers, 1);
  EXPECT_EQ(config.audio.num_learnable_registers, 0);
  EXPECT_FALSE(config.audio.gated_attention);
}

TEST(ConnectorsConfig, has_the_reference_s_defaults) {
  ConnectorsConfig config = ConnectorsConfig::parse(json::object(), "config.json");

  EXPECT_EQ(config.feature_columns(), 188'160);
  EXPECT_FALSE(config.per_modality_projections);
  EXPECT_EQ(config.video.width(), 3840);
  EXPECT_EQ(config.video.num_layers, 2);
  EXPECT_EQ(config.audio.num_learnable_registers, 128);
  EXPECT_EQ(config.audio.rope_layout, nn::RopeLayout::interleaved);
}

TEST(ConnectorsConfig, refuses_widths_that_do_not_meet_naming_file_and_key) {
  EXPECT_THAT([] { ConnectorsConfig::parse(changed("video_hidden_dim", 40), "dir/config.json"); },
              test::ThrowsError(ErrorKind::bad_input,
                                AllOf(HasSubstr("dir/config.json"), HasSubstr("'video_hidden_dim' is 40"))));
  EXPECT_THAT([] { ConnectorsConfig::parse(changed("per_modality_projections", false), "config.json"); },
              test::ThrowsError(ErrorKind::bad_input, HasSubstr("'caption_channels' is 12")));
}

TEST(ConnectorsConfig, refuses_an_unknown_rope_type) {
  EXPECT_THAT([] { ConnectorsConfig::parse(changed("rope_type", "spiral"), "dir/config.json"); },
              test::ThrowsError(ErrorKind::bad_input, HasSubstr("spiral")));
}

TEST(TextEncoderSize, of_the_wrong_model_is_refused_with_both_sizes_and_names) {
  ConnectorsConfig config = ConnectorsConfig::parse(json::object(), "config.json");

  EXPECT_NO_THROW(require_text_encoder(config, {.name = "gemma", .hidden_size = 3840, .states = 49}));
  EXPECT_THAT(
      [&] { require_text_encoder(config, {.name = "encoders/4b", .hidden_size = 2560, .states = 35}); },
      test::ThrowsError(
          ErrorKind::mismatch,
          AllOf(HasSubstr("encoders/4b"), HasSubstr("hidden size 2560 and 34 layers (Gemma 3 4B)"),
                HasSubstr("needs hidden size 3840 and 48 layers (Gemma 3 12B)")),
          HasSubstr("Gemma 3 12B")));
}

TEST(TextEncoderSize, of_another_depth_is_refused) {
  ConnectorsConfig config = ConnectorsConfig::parse(kConfig, "config.json");

  EXPECT_THAT([&] { require_text_encoder(config, {.name = "x", .hidden_size = 12, .states = 5}); },
              test::ThrowsError(ErrorKind::mismatch,
                                AllOf(HasSubstr("12 and 4 layers"), HasSubstr("12 and 3 layers"))));
}

}  // namespace
}  // namespace sluice::ltx2
