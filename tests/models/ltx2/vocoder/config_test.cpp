#include "models/ltx2/vocoder/config.h"
#include "models/ltx2/vocoder/vocoder.h"

#include "support/fixture.h"

#include <sluice/error.h>

#include <gmock/gmock.h>

namespace sluice::ltx2 {
namespace {

using testing::HasSubstr;

nlohmann::json small_config() {
  return test::Fixture("vocoder/bwe").config();
}

nlohmann::json config_with(const std::string& key, const nlohmann::json& value) {
  nlohmann::json config = small_config();
  config[key] = value;
  return config;
}

std::string refusal(const nlohmann::json& config) {
  try {
    VocoderConfig::parse(config, "vocoder/config.json");
  } catch (const Error& error) {
    return error.kind() == ErrorKind::bad_input ? error.what() : "another kind";
  }
  return "accepted";
}

TEST(VocoderConfig, reads_the_three_ends_a_generator_may_have) {
  EXPECT_EQ(VocoderConfig::parse(config_with("final_act_fn", nullptr)).vocoder.final_activation,
            FinalActivation::none);
  EXPECT_EQ(VocoderConfig::parse(config_with("final_act_fn", "clamp")).vocoder.final_activation,
            FinalActivation::clamp);
  EXPECT_EQ(VocoderConfig::parse(config_with("final_act_fn", "tanh")).vocoder.final_activation,
            FinalActivation::tanh);
  EXPECT_THAT(refusal(config_with("final_act_fn", "sigmoid")), HasSubstr("'final_act_fn' is \"sigmoid\""));
}

TEST(VocoderConfig, refuses_the_vocoder_without_bandwidth_extension) {
  nlohmann::json config = {{"in_channels", 128}, {"hidden_channels", 1024}, {"act_fn", "leaky_relu"}};

  EXPECT_THAT(refusal(config),
              HasSubstr("a vocoder without bandwidth extension (LTX-2.0) is not implemented"));
}

TEST(VocoderConfig, refuses_by_name_what_is_not_implemented) {
  EXPECT_THAT(refusal(config_with("act_fn", "leaky_relu")), HasSubstr("'act_fn' is \"leaky_relu\""));
  EXPECT_THAT(refusal(config_with("bwe_act_fn", "snake")), HasSubstr("'bwe_act_fn' is \"snake\""));
  EXPECT_THAT(refusal(config_with("bwe_antialias", false)), HasSubstr("'bwe_antialias' is false"));
  EXPECT_THAT(refusal(config_with("resnet_kernel_sizes", {3, 4, 11})), HasSubstr("'resnet_kernel_sizes'"));
  EXPECT_THAT(refusal(config_with("output_sampling_rate", 44100)),
              HasSubstr("'output_sampling_rate' is 44100"));
}

TEST(VocoderConfig, refuses_a_config_without_a_key_it_reads) {
  const nlohmann::json whole = small_config();
  for (const auto& [key, value] : whole.items()) {
    nlohmann::json config = whole;
    config.erase(key);
    EXPECT_THAT(refusal(config), HasSubstr("no '" + key + "'"));
  }
}

TEST(VocoderConfig, refuses_parts_that_do_not_fit_together) {
  EXPECT_THAT(refusal(config_with("hop_length", 20)),
              HasSubstr("makes 30 samples a frame, hop 20 and rates 16000 to 48000 need 60"));
  EXPECT_THAT(refusal(config_with("num_mel_channels", 9)), HasSubstr("takes 16 channels"));
  EXPECT_THAT(refusal(config_with("upsample_factors", {5, 2})), HasSubstr("one number a stage"));
  EXPECT_THAT(refusal(config_with("hidden_channels", 4)), HasSubstr("cannot be halved 3 times"));
}

// 1227 tensors with the unused inverse basis.
TEST(Vocoder, names_every_tensor_of_the_published_vocoder) {
  nlohmann::json config = small_config();
  config.update({{"in_channels", 128},
                 {"hidden_channels", 1536},
                 {"upsample_kernel_sizes", {11, 4, 4, 4, 4, 4}},
                 {"upsample_factors", {5, 2, 2, 2, 2, 2}},
                 {"bwe_in_channels", 128},
                 {"bwe_hidden_channels", 512},
                 {"bwe_upsample_kernel_sizes", {12, 11, 4, 4, 4}},
                 {"bwe_upsample_factors", {6, 5, 2, 2, 2}},
                 {"filter_length", 512},
                 {"window_length", 512},
                 {"hop_length", 80},
                 {"num_mel_channels", 64}});
  Vocoder vocoder(VocoderConfig::parse(config));

  std::size_t tensors = 0;
  for (const weights::ParameterGroup* group : vocoder.groups()) tensors += group->parameters.size();

  EXPECT_EQ(tensors + 1, 1227u);
}

}  // namespace
}  // namespace sluice::ltx2
