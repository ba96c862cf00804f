#include "models/ltx2/audio_vae/decoder.h"

#include "support/fixture.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

namespace sluice::ltx2 {
namespace {

using test::Fixture;
using testing::HasSubstr;

at::Tensor denormalized(const AudioDecoder& decoder, weights::WeightSource& source,
                        const at::Tensor& packed) {
  auto lease = source.acquire(decoder.statistics_group());
  const AudioVaeConfig& config = decoder.config();
  return denormalize_packed(decoder.statistics(), packed)
      .unflatten(2, {config.latent_channels, config.latent_bins()})
      .transpose(1, 2);
}

class AudioDecodeParity : public testing::TestWithParam<std::string> {};

TEST_P(AudioDecodeParity, gives_the_references_latents_and_mel) {
  Fixture fixture("audio_vae/" + GetParam());
  AudioDecoder decoder(AudioVaeConfig::parse(fixture.config()));
  auto source = test::open_weights(fixture.weights_path(), decoder.groups(), AudioDecoder::ignore_rules());

  at::Tensor latents = denormalized(decoder, *source, fixture.input("latents_packed_normalized"));

  EXPECT_TRUE(fixture.matches("latents", latents));
  EXPECT_TRUE(fixture.matches("mel", decoder.decode(*source, latents)));
}

INSTANTIATE_TEST_SUITE_P(cases, AudioDecodeParity, testing::Values("decode_l1", "decode_l6"),
                         [](const auto& info) { return info.param; });

TEST(AudioDecoder, decodes_with_bf16_weights_in_the_latents_f32) {
  Fixture fixture("audio_vae/decode_l6");
  AudioDecoder decoder(AudioVaeConfig::parse(fixture.config()));
  test::TensorMap bf16 = test::converted(test::read_tensors(fixture.weights_path()), at::kBFloat16);
  test::TensorSource narrow(bf16), wide(test::converted(bf16, at::kFloat));

  at::Tensor got = decoder.decode(narrow, fixture.output("latents"));
  at::Tensor want = decoder.decode(wide, fixture.output("latents"));

  EXPECT_EQ(got.scalar_type(), at::kFloat);
  EXPECT_LE(test::error_of_max(got, want), 1e-5);
}

TEST(AudioDecoder, follows_the_latents_into_bf16) {
  Fixture fixture("audio_vae/decode_l6");
  AudioDecoder decoder(AudioVaeConfig::parse(fixture.config()));
  test::TensorSource source(test::converted(test::read_tensors(fixture.weights_path()), at::kBFloat16));

  at::Tensor mel = decoder.decode(source, fixture.output("latents").to(at::kBFloat16));

  EXPECT_EQ(mel.scalar_type(), at::kBFloat16);
  EXPECT_LE(test::error_of_max(mel, fixture.output("mel")), 0.05);
}

TEST(AudioDecoder, is_causal_so_a_longer_clip_starts_the_same) {
  Fixture fixture("audio_vae/decode_l6");
  AudioDecoder decoder(AudioVaeConfig::parse(fixture.config()));
  test::TensorSource source(test::read_tensors(fixture.weights_path()));

  at::Tensor start = decoder.decode(source, fixture.output("latents").narrow(2, 0, 3));

  EXPECT_LE(test::error_of_max(start, fixture.output("mel").narrow(2, 0, 9)), 1e-4);
}

TEST(AudioLatents, normalize_undoes_denormalize) {
  AudioLatentStatistics statistics{at::tensor({1.0, -2.0}), at::tensor({0.5, 4.0})};
  at::Tensor packed = at::tensor({0.25, -3.0, 8.0, 2.0}).view({1, 2, 2});

  at::Tensor back = normalize_packed(statistics, denormalize_packed(statistics, packed));

  EXPECT_TRUE(at::equal(back, packed));
}

nlohmann::json config_with(const std::string& key, const nlohmann::json& value) {
  nlohmann::json config = Fixture("audio_vae/decode_l1").config();
  config[key] = value;
  return config;
}

std::string refusal(const nlohmann::json& config) {
  try {
    AudioVaeConfig::parse(config);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::bad_input ? error.what() : "another kind";
  }
  return "accepted";
}

TEST(AudioVaeConfig, refuses_by_name_what_is_not_implemented) {
  EXPECT_THAT(refusal(config_with("norm_type", "group")), HasSubstr("'norm_type' is \"group\""));
  EXPECT_THAT(refusal(config_with("causality_axis", "width")), HasSubstr("'causality_axis' is \"width\""));
  EXPECT_THAT(refusal(config_with("mid_block_add_attention", true)), HasSubstr("'mid_block_add_attention'"));
  EXPECT_THAT(refusal(config_with("attn_resolutions", {64})), HasSubstr("'attn_resolutions' is [64]"));
}

TEST(AudioVaeConfig, refuses_a_config_without_a_key_that_shapes_the_network) {
  for (auto key : {"norm_type", "causality_axis", "mid_block_add_attention", "base_channels", "ch_mult",
                   "num_res_blocks", "latent_channels", "output_channels", "mel_bins"}) {
    nlohmann::json config = Fixture("audio_vae/decode_l1").config();
    config.erase(key);
    EXPECT_THAT(refusal(config), HasSubstr(std::string("no '") + key + "'"));
  }
}

TEST(AudioVaeConfig, takes_an_empty_list_of_attention_resolutions) {
  EXPECT_EQ(refusal(config_with("attn_resolutions", nlohmann::json::array())), "accepted");
}

}  // namespace
}  // namespace sluice::ltx2
