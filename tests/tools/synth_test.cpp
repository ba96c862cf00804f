#include "models/ltx2/audio_vae/decoder.h"
#include "models/ltx2/connectors/connectors.h"
#include "models/ltx2/files/model_files.h"
#include "models/ltx2/text/gemma.h"
#include "models/ltx2/text/gemma_keys.h"
#include "models/ltx2/transformer/transformer.h"
#include "models/ltx2/video_vae/decoder.h"
#include "models/ltx2/vocoder/vocoder.h"
#include "nn/json_file.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"
#include "synth/fill.h"
#include "synth/parameters.h"
#include "synth/plan.h"
#include "synth/sizes.h"
#include "synth/text_encoder.h"
#include "synth/write.h"

#include <sluice/error.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

namespace sluice::synth {
namespace {

namespace fs = std::filesystem;
using ltx2::ComponentKind;
using ltx2::ModelFiles;
using test::ThrowsError;
using testing::HasSubstr;

std::vector<Component> all_components(const Sizes& sizes) {
  std::vector<Component> components;
  for (ComponentKind kind : ltx2::kComponentKinds) components.push_back(make_component(kind, sizes));
  return components;
}

class SynthTest : public testing::Test {
 protected:
  void write(const Plan& plan, Existing existing = Existing::refuse) {
    check_plan(plan, existing);
    write_plan(plan, /*seed=*/0);
  }
  Plan single(const std::string& name, const PlanOptions& options = {}) {
    return plan_single_file(folder_ / name, components_, sizes_, options);
  }

  Sizes sizes_ = preset("tiny");
  std::vector<Component> components_ = all_components(sizes_);
  test::TemporaryFolder folder_;
};

std::vector<weights::IgnoreRule> joined(std::vector<weights::IgnoreRule> rules, ComponentKind kind) {
  for (auto& rule : ltx2::unused_tensors(kind)) rules.push_back(rule);
  return rules;
}

// Every component's tensors against what the program's models declare.
void account_all(const ModelFiles& files) {
  auto account = [&](ComponentKind kind, const auto& model, std::vector<weights::IgnoreRule> rules) {
    const auto groups = model.groups();
    const auto result = weights::account(files.component(kind).table, groups, joined(std::move(rules), kind));
    EXPECT_GT(result.bound, 0u);
  };
  auto config = [&](ComponentKind kind) { return files.component(kind).config; };
  account(ComponentKind::transformer,
          ltx2::Transformer(ltx2::TransformerConfig::parse(config(ComponentKind::transformer), "t")), {});
  account(ComponentKind::connectors,
          ltx2::Connectors(ltx2::ConnectorsConfig::parse(config(ComponentKind::connectors), "c")), {});
  account(ComponentKind::vae, ltx2::VideoDecoder(ltx2::VideoVaeConfig::parse(config(ComponentKind::vae))),
          ltx2::VideoDecoder::ignore_rules());
  account(ComponentKind::audio_vae,
          ltx2::AudioDecoder(ltx2::AudioVaeConfig::parse(config(ComponentKind::audio_vae))),
          ltx2::AudioDecoder::ignore_rules());
  account(ComponentKind::vocoder, ltx2::Vocoder(ltx2::VocoderConfig::parse(config(ComponentKind::vocoder))),
          ltx2::Vocoder::ignore_rules());
}

std::string bytes_of(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  std::string bytes(tensor.size, '\0');
  checkpoint.read(tensor, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

void expect_same_values(const ModelFiles& a, const ModelFiles& b) {
  for (ComponentKind kind : ltx2::kComponentKinds) {
    const auto &first = a.component(kind).table, &second = b.component(kind).table;
    ASSERT_EQ(first.tensors.size(), second.tensors.size());
    for (const auto& [name, tensor] : first.tensors) {
      ASSERT_TRUE(second.tensors.contains(name)) << name;
      ASSERT_EQ(bytes_of(first.checkpoint, tensor), bytes_of(second.checkpoint, second.tensors.at(name)))
          << name;
    }
  }
}

TEST(SynthSizes, the_22b_preset_has_as_many_tensors_and_parameters_as_the_published_model) {
  const Sizes sizes = preset("22b");
  // Tensors, and parameters in millions as far as they are published.
  const std::map<ComponentKind, std::pair<std::size_t, double>> published = {
      {ComponentKind::transformer, {4186, 18990}}, {ComponentKind::connectors, {262, 3170}},
      {ComponentKind::vae, {170, 726.1}},          {ComponentKind::audio_vae, {102, 53.2}},
      {ComponentKind::vocoder, {1227, 129.1}},
  };

  for (const auto& [kind, expected] : published) {
    const Component component = make_component(kind, sizes);
    double parameters = 0;
    for (const NamedShape& tensor : component.tensors)
      parameters += std::accumulate(tensor.shape.begin(), tensor.shape.end(), 1.0, std::multiplies<>());
    EXPECT_EQ(component.tensors.size(), expected.first) << to_string(kind);
    EXPECT_NEAR(parameters / 1e6, expected.second, 1e-3 * expected.second) << to_string(kind);
  }
}

TEST(SynthSizes, blocks_change_the_transformer_alone) {
  const Sizes sizes = with_blocks(preset("22b"), 4);

  EXPECT_EQ(make_component(ComponentKind::transformer, sizes).tensors.size(), 4 * 86 + 58u);
  EXPECT_EQ(make_component(ComponentKind::connectors, sizes).tensors.size(), 262u);
}

TEST_F(SynthTest, a_single_file_opens_as_a_published_one_and_every_tensor_is_accounted_for) {
  write(single("model.safetensors"));

  const ModelFiles files = ModelFiles::open(folder_ / "model.safetensors");

  EXPECT_EQ(files.version(), "2.3.0");
  EXPECT_TRUE(files.warnings().empty());
  account_all(files);
}

TEST_F(SynthTest, all_layouts_hold_the_same_values) {
  write(single("model.safetensors"));
  write(plan_shards(folder_ / "shards", components_, sizes_, {.shard_size = MiB(2)}));
  write(plan_diffusers(folder_ / "diffusers", components_, {.shard_size = MiB(1)}));

  const ModelFiles files = ModelFiles::open(folder_ / "model.safetensors");
  const ModelFiles shards = ModelFiles::open(folder_ / "shards");
  const ModelFiles diffusers = ModelFiles::open(folder_ / "diffusers");

  EXPECT_GT(shards.checkpoints().front().shards().size(), 2u);
  expect_same_values(files, shards);
  expect_same_values(files, diffusers);
  account_all(shards);
  account_all(diffusers);
}

TEST_F(SynthTest, values_follow_from_the_seed) {
  const Plan a = single("a.safetensors"), b = single("b.safetensors"), c = single("c.safetensors");
  write_plan(a, 1);
  write_plan(b, 1);
  write_plan(c, 2);

  EXPECT_EQ(test::file_content(folder_ / "a.safetensors"), test::file_content(folder_ / "b.safetensors"));
  EXPECT_NE(test::file_content(folder_ / "a.safetensors"), test::file_content(folder_ / "c.safetensors"));
}

TEST_F(SynthTest, a_text_encoder_fits_the_checkpoint) {
  Plan plan;
  add_text_encoder(plan, text_sizes(sizes_), {.folder = folder_ / "gemma"});
  write(plan);

  const auto config = nn::read_json_file(folder_ / "gemma" / "config.json");
  const ltx2::GemmaEncoder encoder(ltx2::GemmaConfig::parse(config, "config.json"));
  const auto table = ltx2::gemma_table(Checkpoint::open(folder_ / "gemma"));
  weights::account(table, encoder.groups());

  const auto connectors =
      ltx2::ConnectorsConfig::parse(make_component(ComponentKind::connectors, sizes_).config, "connectors");
  ltx2::require_text_encoder(
      connectors,
      {.name = "gemma", .hidden_size = encoder.config.hidden_size, .states = encoder.config.states()});
}

TEST(SynthText, the_22b_preset_goes_with_gemma_3_12b) {
  Plan plan;
  add_text_encoder(plan, text_sizes(preset("22b")), {.folder = "gemma"});

  // 11.77 G parameters of the language model of Gemma 3 12B, in bf16; 13 tensors a layer.
  EXPECT_NEAR(static_cast<double>(plan.data_size()), 2 * 11.77e9, 0.01e9);
  EXPECT_EQ(plan.tensors(), 48 * 13 + 2u);
}

TEST_F(SynthTest, refuses_to_replace_what_is_there_unless_told) {
  write(single("model.safetensors"));
  write(plan_diffusers(folder_ / "diffusers", components_, {}));

  EXPECT_THAT([&] { check_plan(single("model.safetensors"), Existing::refuse); },
              ThrowsError(ErrorKind::usage, HasSubstr("model.safetensors"), HasSubstr("--overwrite")));
  EXPECT_THAT([&] { check_plan(plan_diffusers(folder_ / "diffusers", components_, {}), Existing::refuse); },
              ThrowsError(ErrorKind::usage, HasSubstr("diffusers"), HasSubstr("--overwrite")));
}

TEST_F(SynthTest, overwriting_leaves_no_shard_of_the_layout_before) {
  write(plan_diffusers(folder_ / "diffusers", components_, {.shard_size = MiB(1)}));

  write(plan_diffusers(folder_ / "diffusers", components_, {}), Existing::overwrite);

  const ModelFiles files = ModelFiles::open(folder_ / "diffusers");
  for (const Checkpoint& checkpoint : files.checkpoints()) EXPECT_EQ(checkpoint.shards().size(), 1u);
  account_all(files);
}

TEST_F(SynthTest, refuses_what_the_disk_cannot_hold_before_it_writes) {
  Plan plan = single("model.safetensors");
  plan.files.front().tensors.push_back(
      {"huge", "transformer", {"huge", {std::int64_t{1} << 40, 1 << 10}}, Dtype::F32});

  EXPECT_THAT([&] { check_plan(plan, Existing::refuse); },
              ThrowsError(ErrorKind::does_not_fit, HasSubstr("4096.0 TiB")));
  EXPECT_TRUE(folder_.names().empty());
}

TEST(SynthSizes, refuses_a_config_without_an_object) {
  test::TemporaryFolder folder;
  test::write_file(folder / "sizes.json", R"({"transformer": {}, "vae": {}, "vocoder": {}})");

  EXPECT_THAT([&] { read_sizes(folder / "sizes.json"); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("'audio_vae'")));
}

// The values of a tensor in f32, made in pieces of this many elements.
std::vector<float> values(const NamedShape& tensor, std::size_t piece) {
  const Fill fill = choose_fill("transformer", tensor, 5);
  std::size_t count = 1;
  for (std::int64_t extent : tensor.shape) count *= static_cast<std::size_t>(extent);
  std::vector<float> all(count);
  for (std::size_t at = 0; at < count; at += piece) {
    generate(fill, Dtype::F32, static_cast<std::int64_t>(at),
             std::as_writable_bytes(std::span(all).subspan(at, std::min(piece, count - at))));
  }
  return all;
}

TEST(SynthFill, pieces_make_the_same_values_as_the_whole) {
  const NamedShape tensor = {"transformer_blocks.0.attn1.to_q.weight", {33, 101}};

  EXPECT_EQ(values(tensor, 4096), values(tensor, 64));
}

TEST(SynthFill, a_matrix_keeps_the_size_of_what_it_multiplies) {
  const auto v = values({"transformer_blocks.0.ff.net.2.weight", {256, 1024}}, 1 << 20);

  double sum = 0, squares = 0;
  for (float x : v) sum += x, squares += static_cast<double>(x) * x;
  EXPECT_NEAR(sum / static_cast<double>(v.size()), 0, 1e-3 / 32);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(v.size())), 1.0 / 32, 0.01 / 32);
}

TEST(SynthFill, names_decide_what_values_mean) {
  auto mean = [](const NamedShape& tensor) {
    const auto v = values(tensor, 1 << 20);
    return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  };

  EXPECT_NEAR(mean({"transformer_blocks.0.attn1.norm_q.weight", {4096}}), 1, 0.01);
  EXPECT_NEAR(mean({"layers.0.input_layernorm.weight", {4096}}), 0, 0.01);  // Gemma's: minus one
  EXPECT_NEAR(mean({"vocoder.act_out.upsample.filter", {1, 1, 12}}), 1.0 / 12, 1e-6);
  for (float std : values({"latents_std", {128}}, 128)) EXPECT_GT(std, 0.5F);
}

TEST(SynthFill, bf16_is_the_rounded_f32) {
  const NamedShape tensor = {"proj_in.weight", {16, 16}};
  const Fill fill = choose_fill("transformer", tensor, 5);
  std::vector<std::uint16_t> half(256);
  generate(fill, Dtype::BF16, 0, std::as_writable_bytes(std::span(half)));

  const auto whole = values(tensor, 256);
  for (std::size_t i = 0; i < half.size(); ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(half[i]) << 16;
    float widened = 0;
    std::memcpy(&widened, &bits, 4);
    EXPECT_NEAR(widened, whole[i], std::abs(whole[i]) / 256);
  }
}

}  // namespace
}  // namespace sluice::synth
