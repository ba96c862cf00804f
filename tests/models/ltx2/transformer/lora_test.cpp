// A transformer with adapters beside its weights against the same one with the adapters merged into them.
#include "kernels/low_rank.h"
#include "kernels/widen.h"
#include "models/ltx2/transformer/transformer.h"
#include "support/random_transformer.h"
#include "support/temporary_folder.h"
#include "weights/lora/lora_source.h"
#include "weights/tensor_file.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace sluice::ltx2 {
namespace {

using test::TensorMap;
using weights::LoraFile;
using weights::LoraResidence;

enum class Stored { f32, bf16, fp8, nf4 };

void PrintTo(Stored stored, std::ostream* out) {
  *out << std::array{"f32", "bf16", "fp8", "nf4"}[static_cast<std::size_t>(stored)];
}

TransformerConfig small_config() {
  TransformerConfig config = test::RandomTransformer::config();
  config.video.heads = config.audio.heads = 2;
  config.video.text_dim = config.video.width();
  config.audio.text_dim = config.audio.width();
  config.cross_width = config.audio.width();
  return config;
}

class Adapted : public testing::TestWithParam<Stored> {
 protected:
  Adapted() {
    at::manual_seed(4);
    write_model();
    model_bytes_ = test::file_content(folder_ / "model.safetensors");
  }

  // Matrices in the format that is tested, all else in f32; and what their values are.
  void write_model() {
    weights::NamedTensors stored;
    for (const weights::ParameterGroup* group : model_.groups()) {
      for (const weights::Parameter& parameter : group->parameters) {
        const kernels::Matrix matrix = random_matrix(parameter);
        stored.emplace_back(parameter.name, matrix.values);
        if (matrix.scales.defined()) stored.emplace_back(parameter.name + ".scales", matrix.scales);
        at::Tensor values = at::empty({matrix.rows, matrix.columns});
        kernels::reference::widen_rows(matrix, 0, matrix.rows, values);
        values_[parameter.name] = values.view(parameter.shape);
        if (parameter.adapters) targets_.matrices[parameter.name] = parameter.shape;
      }
    }
    weights::write_tensors(folder_ / "model.safetensors", stored);
    table_ = weights::whole_checkpoint("transformer", Checkpoint::open(folder_ / "model.safetensors"));
    for (const auto& [name, shape] : targets_.matrices) describe_quantized(name);
  }

  static kernels::Matrix random_matrix(const weights::Parameter& parameter) {
    const at::Tensor values = at::randn(parameter.shape) * 0.05;
    const std::int64_t rows = parameter.shape.front(), count = values.numel();
    const Stored stored = parameter.adapters ? GetParam() : Stored::f32;
    switch (stored) {
      case Stored::f32:
        return {values, {}, rows, count / rows};
      case Stored::bf16:
        return {values.to(at::kBFloat16), {}, rows, count / rows};
      case Stored::fp8:
        return {(values * 8).to(at::kFloat8_e4m3fn), at::full({}, 0.125F), rows, count / rows};
      case Stored::nf4:
        return {at::randint(0, 256, {(count + 1) / 2}, at::kByte), at::rand({(count + 63) / 64}) * 0.1, rows,
                count / rows};
    }
    return {};
  }

  void describe_quantized(const std::string& name) {
    if (GetParam() != Stored::fp8 && GetParam() != Stored::nf4) return;
    auto scales = table_.tensors.extract(name + ".scales");
    table_.quantized[name] = {
        GetParam() == Stored::fp8 ? weights::QuantFormat::fp8 : weights::QuantFormat::nf4,
        scales.mapped(),
        {}};
  }

  // Adapters for every matrix that can have one, of another rank each, in a file; strong enough to be seen.
  LoraFile adapter(const char* name, std::int64_t rank, at::ScalarType dtype, double strength) {
    weights::NamedTensors pairs;
    for (const auto& [parameter, shape] : targets_.matrices) {
      const std::string layer = "diffusion_model." + parameter.substr(0, parameter.size() - 7);
      const at::Tensor down = (at::randn({rank, shape[1]}) * 0.05).to(dtype),
                       up = (at::randn({shape[0], rank}) * 0.5).to(dtype);
      pairs.emplace_back(layer + ".lora_A.weight", down);
      pairs.emplace_back(layer + ".lora_B.weight", up);
      pairs.emplace_back(layer + ".alpha", at::full({}, 2.0F));
      values_[parameter] =
          values_[parameter].to(at::kDouble) +
          strength * 2 / static_cast<double>(rank) * at::matmul(up.to(at::kDouble), down.to(at::kDouble));
      rank = rank % 7 + 1;
    }
    weights::write_tensors(folder_ / name, pairs);
    return weights::open_lora(folder_ / name, strength, targets_);
  }

  std::unique_ptr<weights::WeightSource> mapped() const {
    return weights::make_weight_source(table_, std::make_shared<bytes::MappedCheckpoint>(table_.checkpoint));
  }
  std::unique_ptr<weights::WeightSource> staged() const {
    return weights::make_staged_source(
        table_, weights::plan_stage(table_, model_.groups(), {.resident_blocks = 0, .slots = 2}), {});
  }

  Streams velocities(weights::WeightSource& source) const {
    return model_.forward(source, positions_, {pass_}).front();
  }
  // With the adapters merged, in f32.
  Streams merged() const {
    test::TensorSource source(test::converted(values_, at::kFloat));
    return velocities(source);
  }

  static StreamInput stream(const StreamConfig& of, std::int64_t tokens) {
    return {.latents = at::randn({1, tokens, of.in_channels}),
            .text = at::randn({1, 11, of.text_dim}),
            .timestep = at::full({1}, 500.0F),
            .sigma = at::full({1}, 500.0F)};
  }

  c10::InferenceMode no_graph_;
  test::TemporaryFolder folder_;
  const Transformer model_{small_config()};
  const Pass pass_{.video = stream(model_.config().video, 24), .audio = stream(model_.config().audio, 9)};
  const Positions positions_ =
      make_positions(model_.config(), video_coordinates(model_.config(), {2, 3, 4}, 24),
                     audio_coordinates(model_.config(), 9));
  weights::ComponentTable table_;
  weights::LoraTargets targets_;
  TensorMap values_;  // of the model and what was merged into it
  std::string model_bytes_;
};

void expect_equal(const Streams& got, const Streams& want) {
  EXPECT_LT(test::error_of_max(got.video, want.video), 1e-5);
  EXPECT_LT(test::error_of_max(got.audio, want.audio), 1e-5);
}

TEST_P(Adapted, equals_the_merged_one) {
  const Streams without = merged();
  const LoraFile file = adapter("adapter.safetensors", 32, at::kFloat, 0.7);
  const LoraFile* files[] = {&file};
  const Streams want = merged();
  ASSERT_EQ(file.pairs.size(), targets_.matrices.size());
  ASSERT_GT(test::error_of_max(want.video, without.video), 0.01);

  const auto source = make_lora_source(mapped(), files, model_.groups(), LoraResidence::mapped);

  expect_equal(velocities(*source), want);
}

TEST_P(Adapted, equals_the_merged_one_with_two_adapters_wherever_all_of_it_is) {
  const LoraFile one = adapter("one.safetensors", 3, at::kBFloat16, 1),
                 other = adapter("other.safetensors", 33, at::kFloat, -0.5);
  const LoraFile* files[] = {&one, &other};
  const Streams want = merged();
  const auto in_place = make_lora_source(mapped(), files, model_.groups(), LoraResidence::mapped);
  const Streams first = velocities(*in_place);
  expect_equal(first, want);

  for (const LoraResidence residence : {LoraResidence::mapped, LoraResidence::memory, LoraResidence::disk}) {
    const auto source = make_lora_source(staged(), files, model_.groups(), residence);
    for (int step = 0; step < 2; ++step) {
      const Streams got = velocities(*source);
      EXPECT_TRUE(at::equal(got.video, first.video));
      EXPECT_TRUE(at::equal(got.audio, first.audio));
    }
    EXPECT_NO_THROW(source->check());
  }
}

TEST_P(Adapted, leaves_its_files_as_they_are) {
  const LoraFile file = adapter("adapter.safetensors", 8, at::kBFloat16, 1);
  const LoraFile* files[] = {&file};
  const std::string before = test::file_content(folder_ / "adapter.safetensors");

  for (const LoraResidence residence : {LoraResidence::mapped, LoraResidence::disk})
    velocities(*make_lora_source(mapped(), files, model_.groups(), residence));

  EXPECT_TRUE(test::file_content(folder_ / "model.safetensors") == model_bytes_);
  EXPECT_TRUE(test::file_content(folder_ / "adapter.safetensors") == before);
}

TEST_P(Adapted, takes_no_more_memory_within_a_step_than_is_planned) {
  const LoraFile file = adapter("adapter.safetensors", 8, at::kFloat, 1);
  const LoraFile* files[] = {&file};
  auto used = [&](weights::WeightSource& source) {
    kernels::Workspace workspace;
    const kernels::Workspace::Scope scope(workspace);
    model_.forward(source, positions_, {pass_}, workspace);
    return workspace.most_used();
  };
  const Bytes without = used(*mapped());

  const Bytes with = used(*make_lora_source(mapped(), files, model_.groups(), LoraResidence::mapped));

  const std::int64_t ranks[] = {file.highest_rank};
  EXPECT_GE(with, without);
  EXPECT_LE(with, without + kernels::low_rank_scratch(24, ranks, at::kFloat));
}

INSTANTIATE_TEST_SUITE_P(Formats, Adapted,
                         testing::Values(Stored::f32, Stored::bf16, Stored::fp8, Stored::nf4));

}  // namespace
}  // namespace sluice::ltx2
