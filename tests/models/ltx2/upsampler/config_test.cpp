#include "models/ltx2/upsampler/config.h"

#include "models/ltx2/upsampler/growth.h"

#include <sluice/error.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <string>

namespace sluice::ltx2 {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// The metadata of the published x2 file.
json published() {
  return {{"in_channels", 128},        {"mid_channels", 1024},
          {"num_blocks_per_stage", 4}, {"dims", 3},
          {"spatial_upsample", true},  {"temporal_upsample", false},
          {"spatial_scale", 2.0},      {"rational_resampler", false}};
}

json changed(const json& changes) {
  json config = published();
  config.update(changes);
  return config;
}

UpsamplerConfig parse(const json& config) {
  return UpsamplerConfig::parse(config, "up.safetensors");
}

std::string refusal(const json& changes) {
  try {
    parse(changed(changes));
  } catch (const Error& error) {
    return error.kind() == ErrorKind::bad_input ? error.what() : "another kind";
  }
  return "accepted";
}

LatentSize grown(const json& changes, const LatentSize& size) {
  return Growth::of(parse(changed(changes))).grown(size);
}

TEST(UpsamplerConfig, reads_the_published_keys) {
  const UpsamplerConfig config = parse(published());

  EXPECT_EQ(config.in_channels, 128);
  EXPECT_EQ(config.mid_channels, 1024);
  EXPECT_EQ(config.blocks, 4);
  EXPECT_TRUE(config.spatial);
  EXPECT_FALSE(config.temporal || config.rational || config.frame_by_frame);
}

TEST(UpsamplerConfig, reads_diffusers_names_of_scale_and_layout) {
  json config = published();
  config.erase("spatial_scale");
  config.erase("rational_resampler");
  config["rational_spatial_scale"] = 1.5;
  config["use_rational_resampler"] = true;

  const UpsamplerConfig parsed = parse(config);

  EXPECT_TRUE(parsed.rational);
  EXPECT_EQ(parsed.scale_num, 3);
  EXPECT_EQ(parsed.scale_den, 2);
}

TEST(UpsamplerConfig, has_the_official_defaults_for_all_but_the_width) {
  const UpsamplerConfig config = parse({{"mid_channels", 512}});

  EXPECT_EQ(config.in_channels, 128);
  EXPECT_EQ(config.blocks, 4);
  EXPECT_TRUE(config.spatial);
  EXPECT_EQ(config.scale_num, 2);
  EXPECT_EQ(config.scale_den, 1);
  EXPECT_THROW(parse(json::object()), Error);
}

TEST(UpsamplerConfig, refuses_what_is_not_implemented_by_name) {
  EXPECT_THAT(refusal({{"dims", 1}}), HasSubstr("up.safetensors: 'dims' is 1, which is not implemented"));
  EXPECT_THAT(refusal({{"dims", 4}}), HasSubstr("'dims' is 4"));
  EXPECT_THAT(refusal({{"dims", 2}, {"temporal_upsample", true}}), HasSubstr("'dims' is 2"));
  EXPECT_THAT(refusal({{"mid_channels", 48}}), HasSubstr("'mid_channels' is 48"));
  EXPECT_THAT(refusal({{"rational_resampler", true}, {"spatial_scale", 3.0}}),
              HasSubstr("'spatial_scale' is 3.0"));
  EXPECT_THAT(refusal({{"spatial_scale", 1.5}}), HasSubstr("'spatial_scale' is 1.5"));
  EXPECT_THAT(refusal({{"spatial_upsample", false}}),
              HasSubstr("neither 'spatial_upsample' nor 'temporal_upsample' is true"));
}

TEST(UpsamplerConfig, refuses_sizes_that_no_model_has) {
  EXPECT_THAT(refusal({{"mid_channels", std::int64_t{1} << 60}}), HasSubstr("'mid_channels' is"));
  EXPECT_THAT(refusal({{"in_channels", 0}}), HasSubstr("'in_channels' is 0"));
  EXPECT_THAT(refusal({{"num_blocks_per_stage", 1000000000}}), HasSubstr("'num_blocks_per_stage' is"));
  EXPECT_THAT(refusal({{"num_blocks_per_stage", "four"}}), HasSubstr("'num_blocks_per_stage' is \"four\""));
}

TEST(Growth, doubles_height_and_width_in_space) {
  EXPECT_EQ(grown(json::object(), {5, 7, 3}), (LatentSize{5, 14, 6}));
}

TEST(Growth, makes_2_f_minus_1_frames_in_time) {
  EXPECT_EQ(grown({{"spatial_upsample", false}, {"temporal_upsample", true}}, {5, 7, 3}),
            (LatentSize{9, 7, 3}));
  EXPECT_EQ(grown({{"temporal_upsample", true}}, {1, 7, 3}), (LatentSize{1, 14, 6}));
}

TEST(Growth, keeps_the_places_that_the_blur_is_centred_on) {
  auto scaled = [](double scale) {
    return grown({{"rational_resampler", true}, {"spatial_scale", scale}}, {2, 4, 5});
  };

  EXPECT_EQ(scaled(1.5), (LatentSize{2, 6, 8}));
  EXPECT_EQ(scaled(0.75), (LatentSize{2, 3, 4}));
  EXPECT_EQ(scaled(2), (LatentSize{2, 8, 10}));
  EXPECT_EQ(scaled(4), (LatentSize{2, 16, 20}));
}

}  // namespace
}  // namespace sluice::ltx2
