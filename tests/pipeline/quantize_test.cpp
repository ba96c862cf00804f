// Every layout in, the same layout out, which the models' own files open again.
#include "models/ltx2/files/model_files.h"
#include "pipeline/quantize_selection.h"
#include "pipeline/world.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"
#include "synth/parameters.h"
#include "synth/plan.h"
#include "synth/sizes.h"
#include "synth/text_encoder.h"
#include "synth/write.h"

#include <sluice/quantize.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <map>

namespace sluice::test {
namespace {

using ltx2::ComponentKind;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

enum class Layout { single, shards, diffusers };

void write_model(const fs::path& path, Layout layout) {
  const synth::Sizes sizes = synth::preset("tiny");
  std::vector<synth::Component> components;
  for (ComponentKind kind : ltx2::kComponentKinds) components.push_back(synth::make_component(kind, sizes));
  const synth::PlanOptions options{.shard_size = MiB(1)};
  synth::write_plan(layout == Layout::single   ? synth::plan_single_file(path, components, sizes, options)
                    : layout == Layout::shards ? synth::plan_shards(path, components, sizes, options)
                                               : synth::plan_diffusers(path, components, options),
                    0);
}

void write_text_encoder(const fs::path& folder) {
  synth::Plan plan;
  synth::TextSizes sizes = synth::text_sizes(synth::preset("tiny"));
  sizes.vocab_size = 64;
  synth::add_text_encoder(plan, sizes,
                          {.folder = folder, .tokenizer = demo_text_encoder() / "tokenizer.json"});
  synth::write_plan(plan, 0);
}

std::vector<std::byte> content(const Checkpoint& checkpoint, std::string_view name) {
  const TensorInfo* info = checkpoint.find(name);
  if (info == nullptr) throw std::runtime_error(std::string(name) + " is missing");
  std::vector<std::byte> bytes(info->size);
  checkpoint.read(*info, bytes);
  return bytes;
}

// Of the tensors of `before`: those that `after` has with other bytes or dtype.
std::vector<std::string> changed(const Checkpoint& before, const Checkpoint& after) {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : before.tensors()) {
    const TensorInfo* now = after.find(tensor.name);
    if (now == nullptr || now->dtype != tensor.dtype ||
        content(before, tensor.name) != content(after, tensor.name))
      names.push_back(tensor.name);
  }
  return names;
}

struct Form {
  Layout layout;
  QuantizeFormat format;
};

void PrintTo(const Form& form, std::ostream* out) {
  constexpr const char* kNames[] = {"single", "shards", "diffusers"};
  *out << kNames[static_cast<int>(form.layout)] << "_" << to_string(form.format);
}

class QuantizedModel : public ::testing::TestWithParam<Form> {
 protected:
  QuantizedModel() { write_model(source(), GetParam().layout); }

  fs::path source() const {
    return folder_ / (GetParam().layout == Layout::single ? "model.safetensors" : "model");
  }
  QuantizeRequest request() const {
    return {.input = source(),
            .output = folder_ / "quantized",
            .format = GetParam().format,
            .shard_size = MiB(2)};
  }
  fs::path weights(const fs::path& model) const {
    return GetParam().layout == Layout::diffusers ? model / "transformer" : model;
  }

  TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Layouts, QuantizedModel,
                         ::testing::Values(Form{Layout::single, QuantizeFormat::fp8},
                                           Form{Layout::single, QuantizeFormat::nf4},
                                           Form{Layout::shards, QuantizeFormat::nf4},
                                           Form{Layout::diffusers, QuantizeFormat::fp8},
                                           Form{Layout::diffusers, QuantizeFormat::nf4}),
                         ::testing::PrintToStringParamName());

TEST_P(QuantizedModel, has_other_bytes_in_the_block_linears_only) {
  quantize(request());

  const Checkpoint before = Checkpoint::open(weights(source()));
  const Checkpoint after = Checkpoint::open(weights(request().output));
  const std::vector<std::string> names = changed(before, after);
  // Two blocks of six attentions with four linears each and two feed-forwards with two each.
  EXPECT_EQ(names.size() % 28, 0u);
  EXPECT_THAT(names, Each(AllOf(HasSubstr("transformer_blocks."), Not(HasSubstr("connector")),
                                Not(HasSubstr("gate")), ::testing::EndsWith(".weight"))));
  for (const std::string& name : names)
    EXPECT_EQ(after.find(name)->dtype, GetParam().format == QuantizeFormat::fp8 ? Dtype::F8_E4M3 : Dtype::U8);
}

TEST_P(QuantizedModel, is_opened_as_the_model_it_was) {
  quantize(request());

  const auto before = ltx2::ModelFiles::open(source()), after = ltx2::ModelFiles::open(request().output);

  EXPECT_EQ(after.version(), before.version());
  EXPECT_EQ(after.layout(), before.layout());
  for (ComponentKind kind : ltx2::kComponentKinds) {
    json config = after.component(kind).config;
    config.erase("quantization");
    EXPECT_EQ(config, before.component(kind).config) << to_string(kind);
  }
}

TEST_P(QuantizedModel, says_in_metadata_or_config_what_was_done_and_keeps_what_was_there) {
  quantize(request());

  const Checkpoint before = Checkpoint::open(weights(source())),
                   after = Checkpoint::open(weights(request().output));
  for (const Shard& shard : after.shards()) {
    EXPECT_THAT(shard.metadata, IsSupersetOf(before.metadata()));
    EXPECT_EQ(json::parse(shard.metadata.at("quantization")).at("format"), to_string(GetParam().format));
    EXPECT_EQ(shard.metadata.contains("_quantization_metadata"), GetParam().format == QuantizeFormat::fp8);
  }
  if (GetParam().layout != Layout::diffusers) return;
  const json config = json::parse(file_content(request().output / "transformer/config.json"));
  EXPECT_EQ(config.at("quantization").at("components"), json({"transformer"}));
  EXPECT_EQ(file_content(request().output / "vae/config.json"), file_content(source() / "vae/config.json"));
}

TEST_P(QuantizedModel, is_never_quantized_again) {
  quantize(request());
  QuantizeRequest again = request();
  again.input = request().output;
  again.output = folder_ / "again";
  again.format = QuantizeFormat::nf4;

  EXPECT_THAT(
      [&] { quantize(again); },
      ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("already quantized"), HasSubstr("quantized"))));
  EXPECT_FALSE(fs::exists(folder_ / "again.partial"));
}

TEST(QuantizedConnectors, are_quantized_where_they_are_asked_for) {
  const TemporaryFolder folder;
  write_model(folder / "model.safetensors", Layout::single);
  const QuantizeRequest request{.input = folder / "model.safetensors",
                                .output = folder / "out",
                                .format = QuantizeFormat::nf4,
                                .components = {QuantizeComponent::connectors}};

  quantize(request);

  const auto names = changed(Checkpoint::open(request.input), Checkpoint::open(request.output));
  EXPECT_THAT(names, Not(::testing::IsEmpty()));
  EXPECT_THAT(names, Each(HasSubstr("_embeddings_connector.transformer_1d_blocks.")));
}

TEST(QuantizedTextEncoder, has_other_bytes_in_its_layers_linears_and_its_config_and_tokenizer_beside_it) {
  const TemporaryFolder folder;
  write_text_encoder(folder / "gemma");
  const QuantizeRequest request{
      .input = folder / "gemma", .output = folder / "out", .format = QuantizeFormat::nf4};

  const json summary = json::parse(quantize(request));

  EXPECT_EQ(summary.at("components"), json({"text_encoder"}));
  const auto names = changed(Checkpoint::open(request.input), Checkpoint::open(request.output));
  EXPECT_EQ(names.size(), summary.at("quantized_tensors"));
  EXPECT_EQ(names.size() % 7, 0u);
  EXPECT_THAT(names, Each(AllOf(HasSubstr("layers."), HasSubstr("_proj.weight"), Not(HasSubstr("vision")))));
  EXPECT_EQ(file_content(request.output / "tokenizer.json"), file_content(request.input / "tokenizer.json"));
  json config = json::parse(file_content(request.output / "config.json"));
  EXPECT_EQ(config.at("quantization").at("format"), "nf4");
  config.erase("quantization");
  EXPECT_EQ(config, json::parse(file_content(request.input / "config.json")));
}

TEST(QuantizedPipeline, of_a_folder_with_a_text_encoder_has_both_quantized) {
  const TemporaryFolder folder;
  write_model(folder / "model", Layout::diffusers);
  write_text_encoder(folder / "model/text_encoder");

  const json summary = json::parse(
      quantize({.input = folder / "model", .output = folder / "out", .format = QuantizeFormat::nf4}));

  EXPECT_EQ(summary.at("components"), json({"transformer", "text_encoder"}));
  EXPECT_NE(Checkpoint::open(folder / "out/text_encoder").tensors().size(),
            Checkpoint::open(folder / "model/text_encoder").tensors().size());
  EXPECT_TRUE(fs::exists(folder / "out/text_encoder/tokenizer.json"));
  EXPECT_TRUE(fs::exists(folder / "out/model_index.json"));
}

TEST(Quantize, refuses_what_has_nothing_to_quantize_and_components_that_are_not_there) {
  const TemporaryFolder folder;
  write_model(folder / "model", Layout::diffusers);
  QuantizeRequest request{.input = folder / "model/vae", .output = folder / "out"};
  EXPECT_THAT([&] { quantize(request); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("holds nothing to quantize")));

  request.input = folder / "model";
  request.components = {QuantizeComponent::text_encoder};
  EXPECT_THAT([&] { quantize(request); }, ThrowsError(ErrorKind::usage, HasSubstr("holds no text_encoder")));
  EXPECT_FALSE(fs::exists(folder / "out.partial"));
}

TEST(Quantize, refuses_an_output_within_its_input_or_around_it) {
  const TemporaryFolder folder;
  write_model(folder / "model", Layout::diffusers);
  for (const fs::path& output : {folder / "model", folder / "model/out", folder.path()}) {
    EXPECT_THAT([&] { quantize({.input = folder / "model", .output = output, .overwrite = true}); },
                ThrowsError(ErrorKind::usage, HasSubstr("lies in the input")));
  }
}

}  // namespace
}  // namespace sluice::test
