#include "models/ltx2/text/gemma.h"

#include "models/ltx2/text/gemma_keys.h"
#include "support/fixture.h"
#include "support/throws_error.h"
#include "weights/stage.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <map>
#include <span>
#include <string>
#include <vector>

namespace sluice::ltx2 {
namespace {

using nlohmann::json;
using test::Fixture;
using test::TensorSource;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Prompt {
  std::vector<TokenId> ids;
  std::int64_t offset = 0;
};

// The real tokens of a row padded on the left.
Prompt prompt_of(const Fixture& fixture, std::int64_t row) {
  at::Tensor ids = fixture.input("input_ids")[row], mask = fixture.input("attention_mask")[row];
  Prompt prompt;
  for (std::int64_t i = 0; i < ids.size(0); ++i) {
    if (mask[i].item<std::int64_t>() == 0) {
      prompt.offset = i + 1;
    } else {
      prompt.ids.push_back(ids[i].item<TokenId>());
    }
  }
  return prompt;
}

// The fixture's rows, zero at padding, as [batch, tokens, hidden, states].
at::Tensor padded_states(const GemmaEncoder& encoder, weights::WeightSource& source, const Fixture& fixture) {
  const at::Tensor& want = fixture.output("hidden_states");
  at::Tensor got = at::zeros_like(want);
  for (std::int64_t row = 0; row < want.size(0); ++row) {
    Prompt prompt = prompt_of(fixture, row);
    at::Tensor states =
        stacked_hidden_states(encoder, source, {.ids = prompt.ids, .position_offset = prompt.offset});
    got[row].narrow(0, prompt.offset, states.size(0)).copy_(states);
  }
  return got;
}

class Gemma : public testing::Test {
 protected:
  at::Tensor states(const Prompt& prompt, weights::WeightSource& source,
                    at::ScalarType dtype = at::kFloat) const {
    return stacked_hidden_states(
        encoder, source, {.ids = prompt.ids, .position_offset = prompt.offset, .compute_dtype = dtype});
  }

  Fixture fixture{"gemma3/hidden_states"};
  GemmaEncoder encoder{GemmaConfig::parse(fixture.config(), "manifest.json")};
  test::TensorMap tensors = test::read_tensors(fixture.weights_path());
};

TEST_F(Gemma, makes_the_reference_s_states_from_the_file_mapped_and_read) {
  Checkpoint checkpoint = Checkpoint::open(fixture.weights_path());
  weights::ComponentTable table = gemma_table(checkpoint);
  weights::account(table, encoder.groups(), gemma_ignored());
  auto mapped = weights::make_weight_source(table, std::make_shared<bytes::MappedCheckpoint>(checkpoint));
  auto read = weights::make_staged_source(table, plan_stage(table, encoder.groups()),
                                          {.read = {.backend = ReadBackend::pread}});

  EXPECT_TRUE(fixture.matches("hidden_states", padded_states(encoder, *mapped, fixture)));
  EXPECT_TRUE(fixture.matches("hidden_states", padded_states(encoder, *read, fixture)));
}

TEST_F(Gemma, makes_identical_states_from_configs_of_both_forms) {
  json old_form = fixture.config(), new_form = fixture.config();
  for (const char* key : {"layer_types", "rope_parameters"}) old_form.erase(key);
  for (const char* key : {"sliding_window_pattern", "rope_theta", "rope_local_base_freq", "rope_scaling"})
    new_form.erase(key);
  GemmaEncoder old_encoder(GemmaConfig::parse(old_form, "old"));
  GemmaEncoder new_encoder(GemmaConfig::parse({{"model_type", "gemma3"}, {"text_config", new_form}}, "new"));
  TensorSource source(tensors);

  at::Tensor old_states = padded_states(old_encoder, source, fixture);
  at::Tensor new_states = padded_states(new_encoder, source, fixture);

  EXPECT_TRUE(fixture.matches("hidden_states", old_states));
  EXPECT_TRUE(at::equal(old_states, new_states));
}

TEST_F(Gemma, does_not_mind_how_far_a_prompt_is_padded) {
  TensorSource source(tensors);
  Prompt alone = prompt_of(fixture, 0), padded = alone;
  alone.offset = 0;
  padded.offset = 1024 - static_cast<std::int64_t>(padded.ids.size());

  EXPECT_LT(test::error_of_max(states(padded, source), states(alone, source)), 1e-5);
}

TEST_F(Gemma, hands_over_each_state_as_it_is_made) {
  TensorSource source(tensors);
  Prompt prompt = prompt_of(fixture, 0);
  at::Tensor stacked = states(prompt, source);
  const GemmaInput input{.ids = prompt.ids, .position_offset = prompt.offset};
  std::vector<at::Tensor> kept;

  hidden_states(encoder, source, std::span(&input, 1),
                [&](std::size_t, std::int64_t state, const at::Tensor& hidden) {
                  EXPECT_EQ(state, static_cast<std::int64_t>(kept.size()));
                  kept.push_back(hidden);
                });

  EXPECT_TRUE(at::equal(at::stack(kept, 2), stacked));
}

// The states of several prompts from one call.
std::vector<at::Tensor> states_together(const GemmaEncoder& encoder, weights::WeightSource& source,
                                        const std::vector<Prompt>& prompts, at::ScalarType dtype) {
  std::vector<GemmaInput> inputs;
  std::vector<std::vector<at::Tensor>> kept(prompts.size());
  for (const Prompt& prompt : prompts)
    inputs.push_back({.ids = prompt.ids, .position_offset = prompt.offset, .compute_dtype = dtype});
  hidden_states(encoder, source, inputs, [&](std::size_t prompt, std::int64_t, const at::Tensor& hidden) {
    kept[prompt].push_back(hidden);
  });
  std::vector<at::Tensor> stacked;
  for (const auto& of_prompt : kept) stacked.push_back(at::stack(of_prompt, 2));
  return stacked;
}

TEST_F(Gemma, makes_the_same_states_of_prompts_together_as_of_each_alone) {
  TensorSource source(test::converted(tensors, at::kBFloat16));
  const std::vector<Prompt> prompts = {
      prompt_of(fixture, 0), {.ids = {2}, .offset = 1023}, prompt_of(fixture, 1)};

  for (at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const std::vector<at::Tensor> together = states_together(encoder, source, prompts, dtype);

    for (std::size_t i = 0; i < prompts.size(); ++i)
      EXPECT_TRUE(at::equal(together[i], states(prompts[i], source, dtype))) << i;
  }
}

// Notes what is leased, and how many groups' slots are filled already by then.
class WatchedSource final : public weights::WeightSource {
 public:
  WatchedSource(test::TensorMap tensors, std::vector<const weights::ParameterGroup*> groups)
      : inner_(std::move(tensors)), groups_(std::move(groups)) {}

  weights::WeightLease acquire(const weights::ParameterGroup& group) override {
    leased.push_back(group.name);
    for (const weights::ParameterGroup* other : groups_) {
      for (const weights::Parameter& parameter : other->parameters) filled += parameter.slot->defined();
    }
    return inner_.acquire(group);
  }
  at::Tensor rows(const weights::Parameter& table, std::span<const std::int64_t> ids) override {
    looked_up[table.name] += ids.size();
    return inner_.rows(table, ids);
  }
  void check() const override {}
  Bytes bytes_read() const override { return 0; }

  std::vector<std::string> leased;
  std::map<std::string, std::size_t> looked_up;  // rows by table
  int filled = 0;

 private:
  TensorSource inner_;
  std::vector<const weights::ParameterGroup*> groups_;
};

std::vector<std::string> names_of(const std::vector<const weights::ParameterGroup*>& groups) {
  std::vector<std::string> names;
  for (const weights::ParameterGroup* group : groups) names.push_back(group->name);
  return names;
}

TEST_F(Gemma, leases_a_part_of_a_layer_at_a_time_and_each_once_for_all_prompts) {
  WatchedSource source(tensors, encoder.groups());

  states_together(encoder, source, {prompt_of(fixture, 0), prompt_of(fixture, 1)}, at::kFloat);

  EXPECT_EQ(source.filled, 0);
  EXPECT_EQ(source.leased, names_of(encoder.pass()));
  EXPECT_THAT(std::vector(source.leased.begin(), source.leased.begin() + 5),
              ::testing::ElementsAre("layers.0.self_attn", "layers.0.mlp.gate_proj", "layers.0.mlp.up_proj",
                                     "layers.0.mlp.down_proj", "layers.1.self_attn"));
}

TEST_F(Gemma, looks_up_the_rows_of_its_ids_and_never_leases_the_table) {
  WatchedSource source(tensors, encoder.groups());

  states({.ids = {2, 7, 7}}, source);

  EXPECT_THAT(source.looked_up, ::testing::ElementsAre(::testing::Pair("embed_tokens.weight", 3)));
  EXPECT_THAT(source.leased, ::testing::Not(::testing::Contains("embed_tokens")));
  EXPECT_THAT(names_of(encoder.groups()), ::testing::Contains("embed_tokens"));
}

TEST_F(Gemma, reads_every_layer_once_for_two_prompts_and_of_the_embeddings_the_rows_alone) {
  const Checkpoint checkpoint = Checkpoint::open(fixture.weights_path());
  const weights::ComponentTable table = gemma_table(checkpoint);
  auto source = weights::make_staged_source(table, plan_stage(table, encoder.pass()),
                                            {.read = {.backend = ReadBackend::pread}});
  Bytes layers = 0;
  for (const weights::ParameterGroup* group : encoder.pass()) {
    for (const auto& parameter : group->parameters) layers += table.tensors.at(parameter.name).size;
  }

  states_together(encoder, *source, {{.ids = {2, 7, 9}}, {.ids = {2, 11}}}, at::kFloat);

  const Bytes row = table.tensors.at("embed_tokens.weight").size / 160;
  EXPECT_EQ(source->bytes_read(), layers + 5 * row);
}

TEST_F(Gemma, computes_in_f32_from_bf16_weights_as_from_widened_ones) {
  test::TensorMap narrow = test::converted(tensors, at::kBFloat16);
  TensorSource narrow_source(narrow), widened_source(test::converted(narrow, at::kFloat));
  Prompt prompt = prompt_of(fixture, 0);

  EXPECT_LT(test::error_of_max(states(prompt, narrow_source), states(prompt, widened_source)), 1e-6);
}

// The matrices that may be quantized in fp8 with a scale each, everything else as it is.
class Fp8Source final : public weights::WeightSource {
 public:
  explicit Fp8Source(test::TensorMap tensors) : inner_(std::move(tensors)) {}

  static constexpr float kScale = 0.01F;
  static at::Tensor narrowed(const at::Tensor& matrix) { return (matrix / kScale).to(at::kFloat8_e4m3fn); }

  weights::WeightLease acquire(const weights::ParameterGroup& group) override {
    weights::WeightLease lease = inner_.acquire(group);
    for (const weights::Parameter& parameter : group.parameters) {
      if (!parameter.scales) continue;
      *parameter.slot = narrowed(*parameter.slot);
      *parameter.scales = at::full({1}, kScale, at::TensorOptions().dtype(at::kFloat));
    }
    return lease;
  }
  at::Tensor rows(const weights::Parameter& table, std::span<const std::int64_t> ids) override {
    return inner_.rows(table, ids);
  }
  void check() const override {}
  Bytes bytes_read() const override { return 0; }

 private:
  TensorSource inner_;
};

TEST_F(Gemma, computes_from_quantized_matrices_as_from_widened_ones) {
  test::TensorMap widened = tensors;
  for (auto& [name, tensor] : widened) {
    if (name.find("_proj.") != std::string::npos)
      tensor = Fp8Source::narrowed(tensor).to(at::kFloat) * Fp8Source::kScale;
  }
  Fp8Source quantized(tensors);
  TensorSource widened_source(widened);
  const Prompt prompt = prompt_of(fixture, 0);

  EXPECT_LT(test::error_of_max(states(prompt, quantized), states(prompt, widened_source)), 1e-6);
  EXPECT_GT(test::error_of_max(states(prompt, quantized),
                               fixture.output("hidden_states")[0].narrow(
                                   0, prompt.offset, static_cast<std::int64_t>(prompt.ids.size()))),
            1e-4);
}

TEST_F(Gemma, scales_embeddings_by_the_root_rounded_to_the_compute_dtype) {
  TensorSource source(test::converted(tensors, at::kBFloat16));
  Prompt prompt = prompt_of(fixture, 0);
  at::Tensor row = tensors.at("embed_tokens.weight")[prompt.ids[0]].to(at::kBFloat16);

  at::Tensor in_f32 = states(prompt, source)[0].select(1, 0);
  at::Tensor in_bf16 = states(prompt, source, at::kBFloat16)[0].select(1, 0);

  EXPECT_TRUE(at::equal(in_f32, row.to(at::kFloat) * 4.898979485566356));  // sqrt(24)
  EXPECT_TRUE(at::equal(in_bf16, row * at::tensor(4.90625).to(at::kBFloat16)));
}

TEST_F(Gemma, stays_near_f32_when_it_computes_in_bf16) {
  test::TensorMap narrow = test::converted(tensors, at::kBFloat16);
  TensorSource source(narrow);
  Prompt prompt = prompt_of(fixture, 0);

  at::Tensor got = states(prompt, source, at::kBFloat16);

  EXPECT_EQ(got.scalar_type(), at::kBFloat16);
  EXPECT_LT(test::error_of_max(got, states(prompt, source)), 0.05);
}

TEST_F(Gemma, records_no_graph_with_grad_mode_on) {
  for (auto& [name, tensor] : tensors) tensor.requires_grad_(true);
  TensorSource source(tensors);
  ASSERT_TRUE(at::GradMode::is_enabled());

  EXPECT_FALSE(states(prompt_of(fixture, 0), source).requires_grad());
}

TEST_F(Gemma, refuses_a_token_outside_the_vocabulary_before_it_reads_weights) {
  WatchedSource source(tensors, encoder.groups());

  EXPECT_THAT(
      [&] {
        states({.ids = {2, 160}}, source);
      },
      test::ThrowsError(ErrorKind::mismatch, AllOf(HasSubstr("160"), HasSubstr("vocabulary of 160"))));
  EXPECT_THAT([&] { states({.ids = {-1}}, source); },
              test::ThrowsError(ErrorKind::mismatch, HasSubstr("-1")));
  EXPECT_TRUE(source.leased.empty());
}

class GemmaOfAnotherSize : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(GemmaOfAnotherSize, is_refused_from_the_table) {
  Fixture fixture("gemma3/hidden_states");
  json config = fixture.config();
  config.erase("layer_types");
  config[GetParam().first] = GetParam().second;
  GemmaEncoder encoder(GemmaConfig::parse(config, "config.json"));
  weights::ComponentTable table = gemma_table(Checkpoint::open(fixture.weights_path()));

  EXPECT_THAT([&] { weights::account(table, encoder.groups(), gemma_ignored()); },
              test::ThrowsError(ErrorKind::mismatch, HasSubstr("text encoder")));
}

INSTANTIATE_TEST_SUITE_P(, GemmaOfAnotherSize,
                         testing::Values(std::pair{"hidden_size", 32}, std::pair{"vocab_size", 161},
                                         std::pair{"num_hidden_layers", 6}, std::pair{"num_hidden_layers", 8},
                                         std::pair{"head_dim", 16}));

}  // namespace
}  // namespace sluice::ltx2
