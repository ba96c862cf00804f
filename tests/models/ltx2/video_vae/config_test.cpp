#include "models/ltx2/video_vae/config.h"
#include "models/ltx2/video_vae/decoder.h"
#include "models/ltx2/video_vae/time_stream.h"

#include "support/fixture.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

namespace sluice::ltx2 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

nlohmann::json small_config() {
  return test::Fixture("video_vae/decode_f1").config();
}

nlohmann::json config_with(const std::string& key, const nlohmann::json& value) {
  nlohmann::json config = small_config();
  config[key] = value;
  return config;
}

std::string refusal(const nlohmann::json& config) {
  try {
    VideoVaeConfig::parse(config, "vae/config.json");
  } catch (const Error& error) {
    return error.kind() == ErrorKind::bad_input ? error.what() : "another kind";
  }
  return "accepted";
}

// The published 2.3 decoder.
nlohmann::json published_config() {
  nlohmann::json config = small_config();
  config.update({{"latent_channels", 128},
                 {"decoder_block_out_channels", {256, 512, 512, 1024}},
                 {"decoder_layers_per_block", {4, 6, 4, 2, 2}}});
  return config;
}

TEST(VideoVaeConfig, reads_the_lists_from_the_pixel_end_except_the_upsample_types) {
  VideoVaeConfig config = VideoVaeConfig::parse(published_config());

  std::vector<std::int64_t> widths, layers, strides_t, strides_h;
  for (const UpBlockConfig& block : config.up_blocks) {
    widths.push_back(block.channels);
    layers.push_back(block.layers);
    strides_t.push_back(block.stride_t);
    strides_h.push_back(block.stride_h);
  }
  EXPECT_EQ(config.mid_channels, 1024);
  EXPECT_EQ(config.mid_layers, 2);
  EXPECT_THAT(widths, ElementsAre(512, 512, 256, 128));
  EXPECT_THAT(layers, ElementsAre(2, 4, 6, 4));
  EXPECT_THAT(strides_t, ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(strides_h, ElementsAre(2, 2, 1, 2));
  EXPECT_EQ(config.temporal_ratio(), 8);
  EXPECT_EQ(config.spatial_ratio(), 32);
}

TEST(VideoVaeConfig, refuses_by_name_what_is_not_implemented) {
  EXPECT_THAT(refusal(config_with("timestep_conditioning", true)),
              HasSubstr("vae/config.json: 'timestep_conditioning' is true, which is not implemented"));
  EXPECT_THAT(refusal(config_with("decoder_inject_noise", {false, false, true, false, false})),
              HasSubstr("'decoder_inject_noise'"));
  EXPECT_THAT(refusal(config_with("decoder_spatio_temporal_scaling", {true, true, true, false})),
              HasSubstr("'decoder_spatio_temporal_scaling'"));
  EXPECT_THAT(refusal(config_with("patch_size_t", 2)), HasSubstr("'patch_size_t'"));
  EXPECT_THAT(refusal(config_with("decoder_spatial_padding_mode", "replicate")),
              HasSubstr("'decoder_spatial_padding_mode' is \"replicate\""));
  EXPECT_THAT(refusal(config_with("decoder_block_out_channels", {4, 8, 8, 32})),
              HasSubstr("block 1 takes 8 channels and the one before it makes 16: a shortcut convolution"));
}

TEST(VideoVaeConfig, refuses_a_config_without_a_key_that_shapes_the_network) {
  for (auto key :
       {"timestep_conditioning", "decoder_spatial_padding_mode", "decoder_causal", "decoder_inject_noise",
        "decoder_spatio_temporal_scaling", "upsample_residual", "upsample_factor", "upsample_type",
        "decoder_block_out_channels", "decoder_layers_per_block", "patch_size", "patch_size_t",
        "latent_channels", "out_channels"}) {
    nlohmann::json config = small_config();
    config.erase(key);
    EXPECT_THAT(refusal(config), HasSubstr(std::string("no '") + key + "'"));
  }
}

TEST(VideoVaeConfig, refuses_lists_that_do_not_fit_together) {
  EXPECT_THAT(refusal(config_with("upsample_factor", {2, 2, 2})),
              HasSubstr("'upsample_factor' has 3 entries"));
  EXPECT_THAT(refusal(config_with("upsample_factor", {2, 2, 1, 3})), HasSubstr("'upsample_factor' 3"));
  EXPECT_THAT(refusal(config_with("spatial_compression_ratio", 16)),
              HasSubstr("'spatial_compression_ratio' is 16, the decoder's blocks make 32"));
}

TEST(VideoVaeConfig, does_not_look_at_the_encoders_keys) {
  EXPECT_EQ(refusal(config_with("encoder_spatial_padding_mode", "wrap")), "accepted");
}

TEST(VideoDecoder, names_every_tensor_of_the_published_decoder) {
  VideoDecoder decoder(VideoVaeConfig::parse(published_config()));

  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const weights::ParameterGroup* group : decoder.groups())
    for (const weights::Parameter& parameter : group->parameters) shapes[parameter.name] = parameter.shape;
  EXPECT_EQ(shapes.size(), 2u * (2 + 2 * (2 + 2 + 4 + 6 + 4) + 4) + 2);
  EXPECT_THAT(shapes["decoder.up_blocks.0.upsamplers.0.conv.conv.weight"], ElementsAre(4096, 1024, 3, 3, 3));
  EXPECT_THAT(shapes["decoder.up_blocks.2.upsamplers.0.conv.conv.weight"], ElementsAre(512, 512, 3, 3, 3));
  EXPECT_THAT(shapes["decoder.up_blocks.3.resnets.3.conv2.conv.bias"], ElementsAre(128));
  EXPECT_THAT(shapes["decoder.conv_out.conv.weight"], ElementsAre(48, 128, 3, 3, 3));
  EXPECT_THAT(shapes["latents_std"], ElementsAre(128));
}

// Index of a position spelled out in its value: channel, frame, row, column as decimal digits.
at::Tensor numbered(std::int64_t channels, std::int64_t frames, std::int64_t height, std::int64_t width) {
  at::Tensor c = at::arange(channels).view({1, -1, 1, 1, 1}), t = at::arange(frames).view({1, 1, -1, 1, 1});
  at::Tensor h = at::arange(height).view({1, 1, 1, -1, 1}), w = at::arange(width);
  return ((c * 10 + t) * 10 + h) * 10 + w;
}

TEST(DepthToSpace, spreads_channels_over_time_then_rows_then_columns) {
  at::Tensor out = depth_to_space(numbered(8, 2, 1, 1), {.t = 2, .h = 2, .w = 2});

  EXPECT_EQ(out.sizes(), (at::IntArrayRef{1, 1, 4, 2, 2}));
  EXPECT_EQ(out[0][0][0][0][1].item<int>(), 1000);  // column offset 1: channel 1
  EXPECT_EQ(out[0][0][0][1][0].item<int>(), 2000);
  EXPECT_EQ(out[0][0][1][0][0].item<int>(), 4000);
  EXPECT_EQ(out[0][0][3][0][0].item<int>(), 4100);  // frame 3 is offset 1 of frame 1
}

TEST(Unpatchify, has_columns_as_the_slow_offset) {
  at::Tensor out = unpatchify(numbered(4, 1, 1, 2), 2);

  EXPECT_EQ(out.sizes(), (at::IntArrayRef{1, 1, 1, 2, 4}));
  EXPECT_EQ(out[0][0][0][1][0].item<int>(), 1000);  // row offset 1: channel 1
  EXPECT_EQ(out[0][0][0][0][1].item<int>(), 2000);
  EXPECT_EQ(out[0][0][0][0][2].item<int>(), 1);  // the next column of the input
}

}  // namespace
}  // namespace sluice::ltx2
