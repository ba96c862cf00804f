#include "models/ltx2/upsampler/upsampler.h"

#include "support/fixture.h"
#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <string>

namespace sluice::ltx2 {
namespace {

namespace fs = std::filesystem;
using test::SyntheticFile;
using test::TemporaryFolder;
using test::ThrowsError;
using testing::HasSubstr;

const fs::path kFile =
    fs::path(SLUICE_SOURCE_DIR) / "tests/fixtures/checkpoint/single_file/latent_upsampler.safetensors";

// A file of all tensors of an upsampler of 4 latent channels, width 32 and one block a stage.
class File {
 public:
  File() : model_({.in_channels = 4, .mid_channels = 32, .blocks = 1, .spatial = true}) {}

  File& config(std::string json) {
    config_ = std::move(json);
    return *this;
  }
  File& without(std::string name) {
    without_ = std::move(name);
    return *this;
  }
  File& with(std::string name) {
    with_ = std::move(name);
    return *this;
  }
  File& metadata(std::string key, std::string value) {
    extra_ = {std::move(key), std::move(value)};
    return *this;
  }

  test::WrittenFile write() const {
    SyntheticFile file;
    for (const weights::ParameterGroup* group : model_.groups()) {
      for (const weights::Parameter& parameter : group->parameters)
        if (parameter.name != without_) file.tensor(parameter.name, Dtype::BF16, parameter.shape);
    }
    if (!with_.empty()) file.tensor(with_, Dtype::BF16, {1, 1, 5, 5});
    if (!config_.empty()) file.metadata("config", escaped(config_));
    if (!extra_.first.empty()) file.metadata(extra_.first, extra_.second);
    return file.write();
  }

 private:
  static std::string escaped(std::string_view text) {
    std::string result;
    for (char c : text) result += c == '"' ? std::string("\\\"") : std::string(1, c);
    return result;
  }

  LatentUpsampler model_;
  std::string config_ = R"({"in_channels": 4, "num_blocks_per_stage": 1})", without_, with_;
  std::pair<std::string, std::string> extra_;
};

TEST(OpenUpsampler, reads_the_published_layout) {
  const UpsamplerFile file = open_upsampler(kFile);

  EXPECT_EQ(file.model->config().in_channels, 4);
  EXPECT_EQ(file.model->config().mid_channels, 32);
  EXPECT_EQ(file.accounting.bound, file.table.tensors.size());
  EXPECT_EQ(file.version, "");
}

TEST(OpenUpsampler, gives_a_model_that_runs_from_its_file) {
  const UpsamplerFile file = open_upsampler(kFile);
  const auto source = weights::make_weight_source(
      file.table, std::make_shared<bytes::MappedCheckpoint>(file.table.checkpoint));
  at::manual_seed(1);

  const at::Tensor y = file.model->forward(*source, at::randn({1, 4, 2, 3, 5}), at::kFloat);

  EXPECT_EQ(y.sizes(), (at::IntArrayRef{1, 4, 2, 6, 10}));
  EXPECT_TRUE(y.isfinite().all().item<bool>());
  EXPECT_GT(y.std().item<double>(), 0.01);
}

TEST(OpenUpsampler, takes_a_missing_width_from_the_weights) {
  const auto file = File().write();

  EXPECT_EQ(open_upsampler(file.path()).model->config().mid_channels, 32);
}

TEST(OpenUpsampler, tells_the_version_that_the_file_says) {
  const auto file = File().metadata("model_version", "2.3.0").write();

  EXPECT_EQ(open_upsampler(file.path()).version, "2.3.0");
}

TEST(OpenUpsampler, reads_a_diffusers_folder_and_a_pipelines) {
  TemporaryFolder pipeline;
  const fs::path folder = pipeline.path() / "latent_upsampler";
  fs::create_directory(folder);
  fs::copy(test::Fixture("latent_upsampler/rational_x2").weights_path(),
           folder / "diffusion_pytorch_model.safetensors");
  test::write_file(folder / "config.json", test::Fixture("latent_upsampler/rational_x2").config().dump());

  for (const fs::path& path : {folder, pipeline.path()}) {
    const UpsamplerFile file = open_upsampler(path);
    EXPECT_TRUE(file.model->config().rational);
    EXPECT_EQ(file.accounting.ignored.size(), 1U);  // the blur
  }
}

TEST(OpenUpsampler, refuses_a_folder_of_another_model) {
  TemporaryFolder folder;
  fs::copy(test::Fixture("latent_upsampler/x2").weights_path(),
           folder.path() / "diffusion_pytorch_model.safetensors");
  test::write_file(folder.path() / "config.json", R"({"_class_name": "LTXLatentUpsamplerModel"})");

  EXPECT_THAT([&] { open_upsampler(folder.path()); },
              ThrowsError(ErrorKind::mismatch,
                          HasSubstr("it holds a LTXLatentUpsamplerModel, no LTX2LatentUpsamplerModel")));
}

TEST(OpenUpsampler, refuses_a_folder_without_one) {
  TemporaryFolder folder;

  EXPECT_THAT(
      [&] { open_upsampler(folder.path()); },
      ThrowsError(ErrorKind::bad_input, HasSubstr("neither config.json nor latent_upsampler/config.json")));
}

TEST(OpenUpsampler, refuses_the_checkpoint_of_the_model_itself) {
  const fs::path model = kFile.parent_path() / "model.safetensors";

  EXPECT_THAT([&] { open_upsampler(model); },
              ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("model.safetensors: no latent upsampler"),
                                                      HasSubstr("initial_conv.weight"))));
}

TEST(OpenUpsampler, refuses_what_is_no_file) {
  EXPECT_THAT([] { open_upsampler("/no/such/up.safetensors"); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("/no/such/up.safetensors: there is no such file")));
}

TEST(OpenUpsampler, tells_impostors_and_damaged_files) {
  const test::WrittenFile pointer("up.safetensors",
                                  "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  TemporaryFolder folder;
  fs::copy(kFile, folder.path() / "cut.safetensors");
  fs::resize_file(folder.path() / "cut.safetensors", fs::file_size(kFile) - 1000);

  EXPECT_THAT([&] { open_upsampler(pointer.path()); }, ThrowsError(ErrorKind::bad_input, HasSubstr("LFS")));
  EXPECT_THAT([&] { open_upsampler(folder.path() / "cut.safetensors"); },
              ThrowsError(ErrorKind::corrupt_file, HasSubstr("cut.safetensors")));
}

TEST(OpenUpsampler, refuses_a_file_without_its_config) {
  const auto without = File().config("").write();
  const auto broken = File().config("[1, 2").write();

  EXPECT_THAT([&] { open_upsampler(without.path()); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("the metadata has no 'config'")));
  EXPECT_THAT([&] { open_upsampler(broken.path()); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("'config' in the metadata is no JSON object")));
}

TEST(OpenUpsampler, names_tensors_that_are_missing_left_over_or_of_another_shape) {
  const auto missing = File().without("res_blocks.0.norm2.bias").write();
  const auto extra = File().with("upsampler.blur_down.kernel").write();
  const auto wider =
      File().config(R"({"in_channels": 4, "num_blocks_per_stage": 1, "mid_channels": 64})").write();
  const auto temporal =
      File().config(R"({"in_channels": 4, "num_blocks_per_stage": 1, "temporal_upsample": true})").write();

  EXPECT_THAT([&] { open_upsampler(missing.path()); },
              ThrowsError(ErrorKind::mismatch, HasSubstr("res_blocks.0.norm2.bias")));
  EXPECT_THAT([&] { open_upsampler(extra.path()); },
              ThrowsError(ErrorKind::mismatch, HasSubstr("upsampler.blur_down.kernel")));
  EXPECT_THAT(
      [&] { open_upsampler(wider.path()); },
      ThrowsError(ErrorKind::mismatch, HasSubstr("initial_conv.weight is [32, 4, 3, 3, 3], the config "
                                                 "needs [64, 4, 3, 3, 3]")));
  EXPECT_THAT([&] { open_upsampler(temporal.path()); },
              ThrowsError(ErrorKind::mismatch, HasSubstr("upsampler.0.weight is [128, 32, 3, 3]")));
}

}  // namespace
}  // namespace sluice::ltx2
