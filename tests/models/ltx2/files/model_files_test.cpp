#include "models/ltx2/files/model_files.h"

#include "bytes/format/writer.h"
#include "models/ltx2/files/config_translation.h"
#include "models/ltx2/files/key_map.h"
#include "nn/json_file.h"
#include "support/throws_error.h"

#include <sluice/error.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace sluice::ltx2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

const fs::path kCase = fs::path(SLUICE_SOURCE_DIR) / "tests/fixtures/checkpoint/single_file";

json expected() {
  std::ifstream file(kCase / "expected.json");
  return json::parse(file);
}

class ModelFilesTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  // A file with one tensor a name and this metadata.
  fs::path write(const std::string& name, const std::vector<std::string>& tensors,
                 const std::map<std::string, std::string>& metadata) {
    std::vector<bytes::TensorSpec> specs;
    for (const auto& tensor : tensors) specs.push_back({tensor, Dtype::BF16, {1}});
    bytes::SafetensorsWriter writer(folder_ / name, specs, metadata);
    writer.append(std::vector<std::byte>(2 * tensors.size()));
    writer.finish();
    return folder_ / name;
  }

  std::string error_of(const fs::path& path) {
    try {
      ModelFiles::open(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_ = fs::path(testing::TempDir()) / ("model_files_" + std::to_string(::getpid()));
};

TEST_F(ModelFilesTest, names_every_tensor_of_the_single_file_as_diffusers_does) {
  ModelFiles files = ModelFiles::open(kCase / "model.safetensors");

  const json rows = expected().at("tensors");
  std::size_t named = 0;
  for (const json& row : rows) {
    for (ComponentKind kind : kComponentKinds) {
      if (row.at("component") != to_string(kind)) continue;
      const auto& tensors = files.component(kind).table.tensors;
      auto found = tensors.find(row.at("diffusers").get<std::string>());
      ASSERT_NE(found, tensors.end()) << row;
      EXPECT_EQ(found->second.name, row.at("single_file"));
      ++named;
    }
  }
  EXPECT_EQ(named, rows.size());
  EXPECT_GT(named, 1000u);
  EXPECT_THAT(files.warnings(), testing::IsEmpty());
}

TEST_F(ModelFilesTest, names_every_tensor_of_diffusers_as_the_single_file_does) {
  const Checkpoint checkpoint = Checkpoint::open(kCase / "model.safetensors");
  const json config = json::parse(checkpoint.metadata().at("config"));
  const BlockNames blocks = vae_block_names(config.at("vae"), "here");

  const json rows = expected().at("tensors");
  std::size_t named = 0;
  for (const json& row : rows) {
    for (ComponentKind kind : kComponentKinds) {
      if (row.at("component") != to_string(kind)) continue;
      EXPECT_EQ(single_file_name(kind, row.at("diffusers").get<std::string>(), blocks),
                row.at("single_file"));
      ++named;
    }
  }
  EXPECT_GT(named, 1000u);
}

TEST_F(ModelFilesTest, translates_the_metadata_to_the_configs_of_the_folder) {
  ModelFiles single = ModelFiles::open(kCase / "model.safetensors");
  ModelFiles folder = ModelFiles::open(kCase / "diffusers");

  for (ComponentKind kind : kComponentKinds) {
    const json& translated = single.component(kind).config;
    const json& written = folder.component(kind).config;
    for (const auto& [key, value] : translated.items()) {
      // The published metadata asks for a clamp after the first generator; diffusers' own config has none.
      if (key == "final_act_fn" || !written.contains(key)) continue;
      EXPECT_EQ(value, written.at(key)) << to_string(kind) << " " << key;
    }
  }
  EXPECT_EQ(single.component(ComponentKind::vocoder).config.at("final_act_fn"), "clamp");
  EXPECT_EQ(single.version(), "2.3.0");
}

TEST_F(ModelFilesTest, translates_the_video_encoders_blocks_whole) {
  ModelFiles single = ModelFiles::open(kCase / "model.safetensors");
  ModelFiles folder = ModelFiles::open(kCase / "diffusers");
  const json& translated = single.component(ComponentKind::vae).config;
  const json& written = folder.component(ComponentKind::vae).config;

  for (const char* key :
       {"block_out_channels", "layers_per_block", "downsample_type", "down_block_types",
        "spatio_temporal_scaling", "encoder_causal", "encoder_spatial_padding_mode", "in_channels"})
    EXPECT_EQ(translated.at(key), written.at(key)) << key;
  EXPECT_FALSE(translated.contains("encoder_base_channels"));
}

TEST(ConfigTranslation, keeps_the_name_of_a_sampler_of_the_encoder_that_is_unknown) {
  json config = json::parse(Checkpoint::open(kCase / "model.safetensors").metadata().at("config"));
  config["vae"]["encoder_blocks"][1][0] = "compress_space";
  config["vae"]["encoder_base_channels"] = 8;

  json vae = diffusers_config(
      ComponentKind::vae, config, [](std::string_view) { return nullptr; }, "file");

  EXPECT_EQ(vae.at("downsample_type"),
            json({"compress_space", "temporal", "spatiotemporal", "spatiotemporal"}));
  EXPECT_EQ(vae.at("encoder_base_channels"), 8);
}

TEST(ConfigTranslation, lets_a_file_be_without_a_video_encoder) {
  json config = json::parse(Checkpoint::open(kCase / "model.safetensors").metadata().at("config"));
  config["vae"].erase("encoder_blocks");

  json vae = diffusers_config(
      ComponentKind::vae, config, [](std::string_view) { return nullptr; }, "file");

  EXPECT_FALSE(vae.contains("block_out_channels"));
  EXPECT_TRUE(vae.contains("decoder_block_out_channels"));
}

TEST(ConfigTranslation, refuses_another_mel_front_end_than_the_one_there_is) {
  const json config = json::parse(Checkpoint::open(kCase / "model.safetensors").metadata().at("config"));
  for (const auto& [part, key, value] :
       {std::tuple<std::string, std::string, json>{"stft", "filter_length", 512},
        {"stft", "win_length", 512},
        {"mel", "mel_fmin", 20},
        {"mel", "mel_fmax", 7600},
        {"mel", "n_mel_channels", 3}}) {
    json other = config;
    other["audio_vae"]["preprocessing"][part][key] = value;

    EXPECT_THAT(
        [&] {
          diffusers_config(
              ComponentKind::audio_vae, other, [](std::string_view) { return nullptr; }, "file");
        },
        test::ThrowsError(ErrorKind::bad_input, HasSubstr("'" + key + "'")));
  }
}

TEST(KeyMap, keeps_the_names_of_scales_beside_those_of_their_weights) {
  const std::pair<ComponentKind, std::string> weights[] = {
      {ComponentKind::transformer, "patchify_proj.weight"},
      {ComponentKind::transformer, "transformer_blocks.3.attn1.to_out.0.weight"},
      {ComponentKind::connectors, "text_embedding_projection.video_aggregate_embed.weight"},
      {ComponentKind::connectors, "video_connector.transformer_1d_blocks.1.ff.net.2.weight"}};
  for (const auto& [kind, weight] : weights) {
    const std::string named = diffusers_name({kind, weight}, {});
    const std::string layer = weight.substr(0, weight.size() - 7),
                      named_layer = named.substr(0, named.size() - 7);
    for (const char* part : {".weight_scale", ".scale_weight", ".input_scale", ".scale_input"})
      EXPECT_EQ(diffusers_name({kind, layer + part}, {}), named_layer + part);
    for (const char* part : {".absmax", ".quant_map", ".quant_state.bitsandbytes__nf4"})
      EXPECT_EQ(diffusers_name({kind, weight + part}, {}), named + part);
  }
}

TEST(KeyMap, renames_whole_segments_only) {
  EXPECT_EQ(diffusers_name({ComponentKind::vocoder, "vocoder.ups.1.weight"}, {}),
            "vocoder.upsamplers.1.weight");
  EXPECT_EQ(diffusers_name({ComponentKind::vocoder, "vocoder.act_post.upsample.filter"}, {}),
            "vocoder.act_out.upsample.filter");
  EXPECT_EQ(diffusers_name({ComponentKind::transformer, "audio_adaln_single.linear.bias"}, {}),
            "audio_time_embed.linear.bias");
  EXPECT_EQ(diffusers_name({ComponentKind::vae, "per_channel_statistics.mean-of-stds_over_std-of-means"}, {}),
            "per_channel_statistics.mean-of-stds_over_std-of-means");
}

TEST(KeyMap, numbers_of_vae_blocks_follow_the_block_list) {
  json vae = json::parse(R"({"encoder_blocks": [], "decoder_blocks":
      [["res_x", 1], ["compress_space", 2], ["res_x", 1], ["compress_all", 1], ["res_x", 1]]})");

  BlockNames names = vae_block_names(vae, "here");

  EXPECT_EQ(names.at("decoder.up_blocks.0"), "decoder.mid_block.resnets");
  EXPECT_EQ(names.at("decoder.up_blocks.1"), "decoder.up_blocks.0.upsamplers.0");
  EXPECT_EQ(names.at("decoder.up_blocks.4"), "decoder.up_blocks.1.resnets");
}

TEST_F(ModelFilesTest, refuses_a_file_without_config_in_its_metadata) {
  auto path = write("plain.safetensors", {"vae.x"}, {});

  EXPECT_THAT(error_of(path), testing::AllOf(HasSubstr("plain.safetensors"), HasSubstr("'config'")));
}

TEST_F(ModelFilesTest, refuses_another_model_version_naming_both) {
  auto path = write("new.safetensors", {"vae.x"}, {{"config", "{}"}, {"model_version", "2.10.0"}});

  EXPECT_THAT(error_of(path), testing::AllOf(HasSubstr("2.10.0"), HasSubstr("reads 2.3")));
}

TEST_F(ModelFilesTest, refuses_shards_of_two_versions_naming_both_files) {
  write("a.safetensors", {"vae.a"}, {{"config", "{}"}, {"model_version", "2.3.0"}});
  write("b.safetensors", {"vae.b"}, {{"config", "{}"}, {"model_version", "2.3.1"}});
  std::ofstream(folder_ / "model.safetensors.index.json")
      << R"({"weight_map": {"vae.a": "a.safetensors", "vae.b": "b.safetensors"}})";

  EXPECT_THAT(error_of(folder_),
              testing::AllOf(HasSubstr("a.safetensors"), HasSubstr("b.safetensors"), HasSubstr("2.3.0"),
                             HasSubstr("2.3.1"), HasSubstr("'vae.b'")));
}

TEST_F(ModelFilesTest, refuses_a_missing_key_whose_official_default_differs) {
  json config = json::parse(Checkpoint::open(kCase / "model.safetensors").metadata().at("config"));
  config["vae"].erase("timestep_conditioning");
  auto path = write("cut.safetensors", {"vae.encoder.x"}, {{"config", config.dump()}});

  EXPECT_THAT(error_of(path), testing::AllOf(HasSubstr("vae"), HasSubstr("'timestep_conditioning'")));
}

// The published file with three matrices of the transformer in fp8, each with a scale of this name.
class QuantizedModelFiles : public ModelFilesTest {
 protected:
  fs::path write_fp8(const std::vector<std::string>& scales, const std::string& marker = {}) {
    const Checkpoint whole = Checkpoint::open(kCase / "model.safetensors");
    std::vector<bytes::TensorSpec> specs;
    std::size_t quantized = 0;
    for (const TensorInfo& tensor : whole.tensors()) {
      const bool matrix = tensor.name.starts_with("model.diffusion_model.transformer_blocks.") &&
                          tensor.name.ends_with(".to_q.weight") && quantized < 3;
      specs.push_back({tensor.name, matrix ? Dtype::F8_E4M3 : tensor.dtype, tensor.shape});
      if (!matrix) continue;
      const std::string layer = tensor.name.substr(0, tensor.name.size() - 7);
      if (quantized < scales.size() && !scales[quantized].empty())
        specs.push_back({layer + scales[quantized], Dtype::F32, {}});
      ++quantized;
    }
    if (!marker.empty()) specs.push_back({marker, Dtype::F8_E4M3, {2}});
    bytes::SafetensorsWriter writer(folder_ / "fp8.safetensors", specs, whole.metadata());
    for (const auto& spec : specs) {
      Bytes size = dtype_bits(spec.dtype) / 8;
      for (std::int64_t extent : spec.shape) size *= static_cast<Bytes>(extent);
      writer.append(std::vector<std::byte>(size));
    }
    writer.finish();
    return folder_ / "fp8.safetensors";
  }
};

TEST_F(QuantizedModelFiles, take_scales_under_both_names_and_the_marker_with_or_without_a_prefix) {
  for (const char* marker : {"", "scaled_fp8", "model.diffusion_model.scaled_fp8"}) {
    const ModelFiles files =
        ModelFiles::open(write_fp8({".weight_scale", ".scale_weight", ".weight_scale"}, marker));

    const auto& table = files.component(ComponentKind::transformer).table;
    EXPECT_EQ(table.quantized.size(), 3u);
    EXPECT_FALSE(table.tensors.contains("scaled_fp8"));
    EXPECT_THAT(files.warnings(), testing::IsEmpty());
  }
}

TEST_F(QuantizedModelFiles, warn_of_fp8_without_any_scale) {
  const ModelFiles files = ModelFiles::open(write_fp8({}));

  EXPECT_THAT(files.warnings(),
              testing::ElementsAre(testing::AllOf(HasSubstr("3 fp8 tensors"), HasSubstr("scale 1"))));
}

TEST_F(QuantizedModelFiles, refuse_the_one_that_lacks_a_scale) {
  EXPECT_THAT(
      error_of(write_fp8({".weight_scale", "", ".weight_scale"})),
      testing::AllOf(HasSubstr("transformer_blocks."), HasSubstr("to_q.weight' is fp8 without a scale")));
}

TEST_F(ModelFilesTest, names_the_components_that_a_checkpoint_lacks) {
  json config = json::parse(Checkpoint::open(kCase / "model.safetensors").metadata().at("config"));
  auto path = write("vae_only.safetensors", {"vae.encoder.x"}, {{"config", config.dump()}});

  EXPECT_THAT(error_of(path), testing::AllOf(HasSubstr("transformer"), HasSubstr("vocoder"),
                                             testing::Not(HasSubstr("lacks the vae"))));
}

}  // namespace
}  // namespace sluice::ltx2
