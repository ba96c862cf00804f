#include "models/ltx2/video_vae/encoder_config.h"

#include "models/ltx2/video_vae/encoder.h"
#include "models/ltx2/video_vae/time_stream.h"
#include "support/fixture.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <map>

namespace sluice::ltx2 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

nlohmann::json small_config() {
  return test::Fixture("video_vae/encode_f1").config();
}

nlohmann::json config_with(const std::string& key, const nlohmann::json& value) {
  nlohmann::json config = small_config();
  config[key] = value;
  return config;
}

std::string refusal(const nlohmann::json& config) {
  try {
    VideoEncoderConfig::parse(config, "vae/config.json");
  } catch (const Error& error) {
    return error.kind() == ErrorKind::bad_input ? error.what() : "another kind";
  }
  return "accepted";
}

// The published 2.3 encoder.
nlohmann::json published_config() {
  nlohmann::json config = small_config();
  config.update({{"latent_channels", 128},
                 {"block_out_channels", {256, 512, 1024, 1024}},
                 {"layers_per_block", {4, 6, 4, 2, 2}},
                 {"down_block_types", std::vector<std::string>(4, "LTX2VideoDownBlock3D")}});
  return config;
}

TEST(VideoEncoderConfig, reads_all_lists_in_execution_order) {
  VideoEncoderConfig config = VideoEncoderConfig::parse(published_config());

  std::vector<std::int64_t> widths, layers, convs, means;
  for (const DownBlockConfig& block : config.down_blocks) {
    widths.push_back(block.channels);
    layers.push_back(block.layers);
    convs.push_back(block.conv_channels());
    means.push_back(block.mean_of());
  }
  EXPECT_EQ(config.first_channels, 128);
  EXPECT_THAT(widths, ElementsAre(128, 256, 512, 1024));
  EXPECT_THAT(layers, ElementsAre(4, 6, 4, 2));
  EXPECT_THAT(convs, ElementsAre(64, 256, 128, 128));
  EXPECT_THAT(means, ElementsAre(2, 1, 4, 8));
  EXPECT_EQ(config.mid_channels(), 1024);
  EXPECT_EQ(config.mid_layers, 2);
  EXPECT_EQ(config.temporal_ratio(), 8);
  EXPECT_EQ(config.spatial_ratio(), 32);
}

TEST(VideoEncoderConfig, refuses_by_name_what_is_not_implemented) {
  EXPECT_THAT(
      refusal(config_with("downsample_type", {"spatial", "conv", "temporal", "spatial"})),
      HasSubstr("vae/config.json: 'downsample_type' is [\"spatial\",\"conv\",\"temporal\",\"spatial\"], "
                "which is not implemented"));
  EXPECT_THAT(refusal(config_with("spatio_temporal_scaling", {true, true, true, false})),
              HasSubstr("'spatio_temporal_scaling'"));
  EXPECT_THAT(refusal(config_with("down_block_types", {"LTXVideoDownBlock3D"})),
              HasSubstr("'down_block_types' is [\"LTXVideoDownBlock3D\"]"));
  EXPECT_THAT(refusal(config_with("patch_size_t", 2)), HasSubstr("'patch_size_t' is 2"));
  EXPECT_THAT(refusal(config_with("encoder_spatial_padding_mode", "replicate")),
              HasSubstr("'encoder_spatial_padding_mode' is \"replicate\""));
  EXPECT_THAT(refusal(config_with("encoder_base_channels", 8)), HasSubstr("'encoder_base_channels' is 8"));
}

TEST(VideoEncoderConfig, refuses_a_config_without_a_key_that_shapes_the_network) {
  for (auto key : {"in_channels", "latent_channels", "patch_size", "patch_size_t", "block_out_channels",
                   "layers_per_block", "downsample_type", "spatio_temporal_scaling", "encoder_causal",
                   "encoder_spatial_padding_mode"}) {
    nlohmann::json config = small_config();
    config.erase(key);
    EXPECT_THAT(refusal(config), HasSubstr(std::string("no '") + key + "'"));
  }
}

TEST(VideoEncoderConfig, refuses_lists_that_do_not_fit_together) {
  EXPECT_THAT(refusal(config_with("layers_per_block", {1, 2, 1, 1})),
              HasSubstr("'layers_per_block' has 4 entries, its blocks need 5"));
  EXPECT_THAT(refusal(config_with("downsample_type", {"spatial"})),
              HasSubstr("'downsample_type' has 1 entries"));
  EXPECT_THAT(refusal(config_with("block_out_channels", nlohmann::json::array())),
              HasSubstr("'block_out_channels' is empty"));
  EXPECT_THAT(refusal(config_with("block_out_channels", {8, 16, 20, 16})),
              HasSubstr("block 2: 20 channels are no multiple of the 8 positions"));
  EXPECT_THAT(refusal(config_with("block_out_channels", {8, 16, 24, 256})),
              HasSubstr("block 2: 16 channels at 8 positions cannot be averaged into 24"));
  EXPECT_THAT(refusal(config_with("layers_per_block", {1, -2, 1, 1, 1})),
              HasSubstr("'layers_per_block' of block 1 is -2"));
  EXPECT_THAT(refusal(config_with("temporal_compression_ratio", 4)),
              HasSubstr("'temporal_compression_ratio' is 4, the encoder's blocks make 8"));
}

TEST(VideoEncoderConfig, does_not_look_at_the_decoders_keys) {
  EXPECT_EQ(refusal(config_with("decoder_spatial_padding_mode", "wrap")), "accepted");
}

TEST(VideoEncoder, names_every_tensor_of_the_published_encoder) {
  VideoEncoder encoder(VideoEncoderConfig::parse(published_config()));

  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const weights::Parameter& parameter : encoder.encoder_group().parameters)
    shapes[parameter.name] = parameter.shape;
  EXPECT_EQ(shapes.size(), 2u * (2 + 2 * (4 + 6 + 4 + 2 + 2) + 4));
  EXPECT_THAT(shapes["encoder.conv_in.conv.weight"], ElementsAre(128, 48, 3, 3, 3));
  EXPECT_THAT(shapes["encoder.down_blocks.0.downsamplers.0.conv.conv.weight"], ElementsAre(64, 128, 3, 3, 3));
  EXPECT_THAT(shapes["encoder.down_blocks.3.downsamplers.0.conv.conv.bias"], ElementsAre(128));
  EXPECT_THAT(shapes["encoder.down_blocks.1.resnets.5.conv2.conv.weight"], ElementsAre(256, 256, 3, 3, 3));
  EXPECT_THAT(shapes["encoder.mid_block.resnets.1.conv1.conv.weight"], ElementsAre(1024, 1024, 3, 3, 3));
  EXPECT_THAT(shapes["encoder.conv_out.conv.weight"], ElementsAre(129, 1024, 3, 3, 3));
}

// A position's place spelled out in its value: channel, frame, row, column as decimal digits.
at::Tensor numbered(std::int64_t channels, std::int64_t frames, std::int64_t height, std::int64_t width) {
  at::Tensor c = at::arange(channels).view({1, -1, 1, 1, 1}), t = at::arange(frames).view({1, 1, -1, 1, 1});
  at::Tensor h = at::arange(height).view({1, 1, 1, -1, 1}), w = at::arange(width);
  return (((c * 10 + t) * 10 + h) * 10 + w).to(at::kFloat).contiguous(at::MemoryFormat::ChannelsLast3d);
}

std::vector<FrameRef> all_frames(const at::Tensor& x) {
  std::vector<FrameRef> frames;
  for (std::int64_t i = 0; i < x.size(2); i++) frames.push_back({x, i});
  return frames;
}

TEST(SpaceToDepth, gathers_time_then_rows_then_columns_and_undoes_depth_to_space) {
  const Shuffle shuffle{.t = 2, .h = 2, .w = 2};
  at::Tensor x = numbered(3, 4, 6, 4), zeros = at::zeros_like(x);

  at::Tensor out = space_to_depth(all_frames(x), shuffle, all_frames(zeros), 1);

  EXPECT_EQ(out.sizes(), (at::IntArrayRef{1, 24, 2, 3, 2}));
  EXPECT_EQ(out[0][1][0][0][0].item<int>(), 1);     // channel 1: column offset 1
  EXPECT_EQ(out[0][2][0][0][0].item<int>(), 10);    // row offset 1
  EXPECT_EQ(out[0][4][0][0][0].item<int>(), 100);   // frame offset 1
  EXPECT_EQ(out[0][8][0][0][0].item<int>(), 1000);  // the next channel of x
  EXPECT_TRUE(at::equal(depth_to_space(out, shuffle), x));
}

TEST(SpaceToDepth, adds_the_means_of_neighbouring_channels_of_the_skip) {
  at::Tensor x = at::zeros({1, 1, 1, 2, 2}), skip = numbered(2, 1, 2, 2);

  at::Tensor out = space_to_depth(all_frames(x), {.h = 2, .w = 2}, all_frames(skip), 2);

  // Shuffled: 0 1 10 11 1000 1001 1010 1011.
  EXPECT_TRUE(at::equal(out.flatten(), at::tensor({0.5F, 10.5F, 1000.5F, 1010.5F})));
}

TEST(Patchify, has_columns_as_the_slow_offset_and_undoes_unpatchify) {
  at::Tensor pixels = numbered(2, 3, 4, 6);
  at::Tensor out = at::empty({1, 8, 3, 2, 3},
                             at::TensorOptions(at::kFloat).memory_format(at::MemoryFormat::ChannelsLast3d));

  patchify(pixels, 2, out);

  EXPECT_EQ(out[0][1][0][0][0].item<int>(), 10);  // channel 1: row offset 1
  EXPECT_EQ(out[0][2][0][0][0].item<int>(), 1);   // column offset 1
  EXPECT_TRUE(at::equal(unpatchify(out, 2), pixels));
}

}  // namespace
}  // namespace sluice::ltx2
