#include "models/ltx2/files/model_files.h"

#include "bytes/format/writer.h"
#include "models/ltx2/files/key_map.h"
#include "nn/json_file.h"

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

TEST_F(ModelFilesTest, names_the_components_that_a_checkpoint_lacks) {
  json config = json::parse(Checkpoint::open(kCase / "model.safetensors").metadata().at("config"));
  auto path = write("vae_only.safetensors", {"vae.encoder.x"}, {{"config", config.dump()}});

  EXPECT_THAT(error_of(path), testing::AllOf(HasSubstr("transformer"), HasSubstr("vocoder"),
                                             testing::Not(HasSubstr("lacks the vae"))));
}

}  // namespace
}  // namespace sluice::ltx2
