#include "models/ltx2/connectors/connectors.h"

#include "support/fixture.h"
#include "support/throws_error.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

namespace sluice::ltx2 {
namespace {

using test::Fixture;
using test::TensorSource;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A case with its connectors and weights.
struct Case {
  explicit Case(const std::string& name, Bytes projection_tile = kProjectionTile)
      : fixture("connectors/" + name),
        connectors(ConnectorsConfig::parse(fixture.config(), "manifest.json"), projection_tile),
        tensors(test::read_tensors(fixture.weights_path())) {}

  const at::Tensor& states() const { return fixture.input("text_encoder_hidden_states"); }
  const at::Tensor& mask() const { return fixture.input("attention_mask"); }
  at::Tensor real_states(std::int64_t row) const {
    return states()[row].index_select(0, at::nonzero(mask()[row]).squeeze(1));
  }

  // The cases hold zeros at padding where no registers took its place.
  at::Tensor comparable(const at::Tensor& text) const {
    const bool registers = connectors.config().video.num_learnable_registers > 0;
    return registers ? text : text * mask().unsqueeze(-1);
  }

  Fixture fixture;
  Connectors connectors;
  test::TensorMap tensors;
};

std::vector<TextFeatures> accumulated(const Case& the_case, weights::WeightSource& source,
                                      const std::vector<at::Tensor>& prompts, FeatureLimits limits,
                                      at::ScalarType dtype = at::kFloat) {
  std::vector<std::int64_t> tokens;
  for (const at::Tensor& states : prompts) tokens.push_back(states.size(0));
  FeatureAccumulator accumulator(the_case.connectors.projections, source, tokens, dtype, limits);
  for (std::int64_t state = 0; state < the_case.connectors.config().text_proj_in_factor; ++state) {
    for (std::size_t i = 0; i < prompts.size(); ++i)
      accumulator.add(i, state, prompts[i].select(2, state).to(dtype));
  }
  return accumulator.finish();
}

TextFeatures accumulated(const Case& the_case, weights::WeightSource& source, const at::Tensor& states,
                         FeatureLimits limits) {
  return accumulated(the_case, source, std::vector{states}, limits).front();
}

class ConnectorsParity : public testing::TestWithParam<const char*> {};

TEST_P(ConnectorsParity, makes_the_reference_s_embeddings_from_the_file) {
  Case the_case(GetParam());
  auto source = test::open_weights(the_case.fixture.weights_path(), the_case.connectors.groups());

  TextContext context =
      text_context(the_case.connectors, *source, the_case.states(), the_case.mask(), at::kFloat);

  EXPECT_TRUE(the_case.fixture.matches(
      "normalized", norm_states(the_case.connectors.config(), the_case.states(), the_case.mask())));
  EXPECT_TRUE(the_case.fixture.matches("video_embeds", the_case.comparable(context.video_text)));
  EXPECT_TRUE(the_case.fixture.matches("audio_embeds", the_case.comparable(context.audio_text)));
  EXPECT_TRUE(the_case.fixture.matches("attention_mask", context.mask));
}

TEST_P(ConnectorsParity, takes_flattened_prompt_embeddings_too) {
  Case the_case(GetParam());
  TensorSource source(the_case.tensors);

  TextContext context =
      text_context(the_case.connectors, source, the_case.states().flatten(2), the_case.mask(), at::kFloat);

  EXPECT_TRUE(the_case.fixture.matches("video_embeds", the_case.comparable(context.video_text)));
}

TEST_P(ConnectorsParity, comes_to_the_same_bits_whatever_is_held) {
  Case the_case(GetParam());
  TensorSource source(the_case.tensors);
  const at::Tensor states = the_case.real_states(0);
  TextFeatures whole = accumulated(the_case, source, states, {});
  const auto state_bytes = static_cast<Bytes>(states.size(0) * states.size(1) * 4);

  for (Bytes held : {Bytes(1), state_bytes * 2, state_bytes * 3}) {
    TextFeatures parts = accumulated(the_case, source, states, {.held_states = held});

    EXPECT_TRUE(at::equal(parts.video, whole.video)) << held;
    EXPECT_TRUE(at::equal(parts.audio, whole.audio)) << held;
  }
}

TEST_P(ConnectorsParity, comes_to_the_same_in_projection_tiles_of_any_height) {
  Case whole(GetParam());
  TensorSource source(whole.tensors);
  const at::Tensor states = whole.real_states(0);
  const TextFeatures want = accumulated(whole, source, states, {});

  for (Bytes tile : {Bytes(1), Bytes(700), Bytes(3000)}) {
    Case tiled(GetParam(), tile);
    ASSERT_GT(tiled.connectors.projections.video.tiles.size(), 1U);
    const TextFeatures got = accumulated(tiled, source, states, {});

    EXPECT_LT(test::error_of_max(got.video, want.video), 1e-6) << tile;
    EXPECT_LT(test::error_of_max(got.audio, want.audio), 1e-6) << tile;
    EXPECT_TRUE(at::equal(got.video_padding, want.video_padding)) << tile;
    EXPECT_TRUE(at::equal(got.audio_padding, want.audio_padding)) << tile;
  }
}

TEST_P(ConnectorsParity, pads_prompts_on_the_left) {
  Case the_case(GetParam());
  TensorSource source(the_case.tensors);
  std::vector<PaddedFeatures> prompts;
  for (std::int64_t row = 0; row < the_case.mask().size(0); ++row) {
    prompts.push_back(
        padded_left(accumulated(the_case, source, the_case.real_states(row), {}), the_case.mask().size(1)));
  }

  std::vector<at::Tensor> video, audio, mask;
  for (TextContext& context : connect(the_case.connectors, source, prompts, at::kFloat)) {
    video.push_back(context.video_text);
    audio.push_back(context.audio_text);
    mask.push_back(context.mask);
  }

  EXPECT_TRUE(the_case.fixture.matches("video_embeds", the_case.comparable(at::cat(video))));
  EXPECT_TRUE(the_case.fixture.matches("audio_embeds", the_case.comparable(at::cat(audio))));
  EXPECT_TRUE(the_case.fixture.matches("attention_mask", at::cat(mask)));
}

TEST_P(ConnectorsParity, makes_the_same_bits_of_prompts_together_as_of_each_alone) {
  Case the_case(GetParam());
  TensorSource source(test::converted(the_case.tensors, at::kBFloat16));
  const std::vector<at::Tensor> states = {the_case.real_states(0), the_case.real_states(1)};

  for (at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    auto contexts = [&](const std::vector<at::Tensor>& prompts) {
      std::vector<PaddedFeatures> padded;
      for (TextFeatures& features : accumulated(the_case, source, prompts, {.held_states = Bytes(1)}, dtype))
        padded.push_back(padded_left(std::move(features), the_case.mask().size(1)));
      return connect(the_case.connectors, source, padded, dtype);
    };
    const std::vector<TextContext> together = contexts(states);

    for (std::size_t i = 0; i < states.size(); ++i) {
      const TextContext alone = contexts({states[i]}).front();
      EXPECT_TRUE(at::equal(together[i].video_text, alone.video_text)) << i;
      EXPECT_TRUE(at::equal(together[i].audio_text, alone.audio_text)) << i;
    }
  }
}

// Notes what is leased, and in which order.
class WatchedSource final : public weights::WeightSource {
 public:
  explicit WatchedSource(test::TensorMap tensors) : inner_(std::move(tensors)) {}

  weights::WeightLease acquire(const weights::ParameterGroup& group) override {
    leased.push_back(group.name);
    return inner_.acquire(group);
  }
  at::Tensor rows(const weights::Parameter& table, std::span<const std::int64_t> ids) override {
    return inner_.rows(table, ids);
  }
  void check() const override {}
  Bytes bytes_read() const override { return 0; }

  std::vector<std::string> leased;

 private:
  TensorSource inner_;
};

TEST_P(ConnectorsParity, leases_every_group_once_for_all_prompts_in_their_order) {
  Case the_case(GetParam(), Bytes(700));
  WatchedSource source(the_case.tensors);
  std::vector<std::string> order;
  for (const weights::ParameterGroup* group : the_case.connectors.groups()) {
    if (!group->parameters.empty()) order.push_back(group->name);
  }

  text_context(the_case.connectors, source, the_case.states(), the_case.mask(), at::kFloat);

  EXPECT_EQ(source.leased, order);
}

INSTANTIATE_TEST_SUITE_P(, ConnectorsParity,
                         testing::Values("ltx20", "ltx23", "ltx23_interleaved", "ltx23_no_registers"));

TEST(Connectors, do_not_look_at_what_stands_at_padding) {
  for (const char* name : {"ltx20", "ltx23", "ltx23_no_registers"}) {
    Case the_case(name);
    TensorSource source(the_case.tensors);
    at::Tensor disturbed =
        at::where((the_case.mask() == 0).unsqueeze(-1).unsqueeze(-1), 1e4, the_case.states());

    TextContext context =
        text_context(the_case.connectors, source, disturbed.to(at::kFloat), the_case.mask(), at::kFloat);

    EXPECT_TRUE(the_case.fixture.matches("video_embeds", the_case.comparable(context.video_text))) << name;
    EXPECT_TRUE(the_case.fixture.matches("audio_embeds", the_case.comparable(context.audio_text))) << name;
  }
}

TEST(Connectors, treat_rows_of_a_batch_independently) {
  Case the_case("ltx23");
  TensorSource source(the_case.tensors);

  for (std::int64_t row = 0; row < the_case.mask().size(0); ++row) {
    TextContext alone = text_context(the_case.connectors, source, the_case.states().narrow(0, row, 1),
                                     the_case.mask().narrow(0, row, 1), at::kFloat);

    EXPECT_LT(test::error_of_max(alone.video_text[0], the_case.fixture.output("video_embeds")[row]), 1e-5);
  }
}

TEST(Connectors, fill_a_row_without_any_token_with_registers) {
  Case the_case("ltx23");
  TensorSource source(the_case.tensors);

  TextContext context = text_context(the_case.connectors, source, the_case.states().narrow(0, 0, 1),
                                     at::zeros_like(the_case.mask().narrow(0, 0, 1)), at::kFloat);

  EXPECT_TRUE(at::isfinite(context.video_text).all().item<bool>());
  EXPECT_EQ(context.mask.sum().item<std::int64_t>(), the_case.mask().size(1));
}

TEST(Connectors, compute_in_f32_from_bf16_weights_as_from_widened_ones) {
  Case the_case("ltx23");
  test::TensorMap narrow = test::converted(the_case.tensors, at::kBFloat16);
  TensorSource narrow_source(narrow), widened_source(test::converted(narrow, at::kFloat));

  for (Bytes held : {Bytes(1), MiB(1)}) {
    TextFeatures got = accumulated(the_case, narrow_source, the_case.real_states(0), {.held_states = held});
    TextFeatures want = accumulated(the_case, widened_source, the_case.real_states(0), {.held_states = held});
    EXPECT_LT(test::error_of_max(got.video, want.video), 1e-6);
  }
  TextContext got =
      text_context(the_case.connectors, narrow_source, the_case.states(), the_case.mask(), at::kFloat);
  TextContext want =
      text_context(the_case.connectors, widened_source, the_case.states(), the_case.mask(), at::kFloat);
  EXPECT_LT(test::error_of_max(got.video_text, want.video_text), 1e-6);
  EXPECT_LT(test::error_of_max(got.audio_text, want.audio_text), 1e-6);
}

TEST(Connectors, stay_near_f32_when_they_compute_in_bf16) {
  Case the_case("ltx23");
  TensorSource source(test::converted(the_case.tensors, at::kBFloat16));

  TextContext got =
      text_context(the_case.connectors, source, the_case.states(), the_case.mask(), at::kBFloat16);
  TextContext want =
      text_context(the_case.connectors, source, the_case.states(), the_case.mask(), at::kFloat);

  EXPECT_EQ(got.video_text.scalar_type(), at::kBFloat16);
  EXPECT_LT(test::error_of_max(got.video_text, want.video_text), 0.05);
  EXPECT_LT(test::error_of_max(got.audio_text, want.audio_text), 0.05);
}

TEST(Connectors, record_no_graph_with_grad_mode_on) {
  Case the_case("ltx23");
  for (auto& [name, tensor] : the_case.tensors) tensor.requires_grad_(true);
  TensorSource source(the_case.tensors);
  ASSERT_TRUE(at::GradMode::is_enabled());

  TextContext context =
      text_context(the_case.connectors, source, the_case.states(), the_case.mask(), at::kFloat);

  EXPECT_FALSE(context.video_text.requires_grad());
  EXPECT_FALSE(context.audio_text.requires_grad());
}

TEST(Connectors, refuse_a_length_that_registers_do_not_divide_naming_the_numbers) {
  Case the_case("ltx23");
  TensorSource source(the_case.tensors);
  std::vector<PaddedFeatures> prompts = {
      padded_left(accumulated(the_case, source, the_case.real_states(0), {}), 14)};

  EXPECT_THAT(
      [&] { connect(the_case.connectors, source, prompts, at::kFloat); },
      test::ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("14 positions"), HasSubstr("4 registers")),
                        HasSubstr("12 or 16")));
}

TEST(Connectors, refuse_a_prompt_longer_than_the_row_naming_the_numbers) {
  EXPECT_THAT(
      [&] {
        padded_left({at::zeros({9, 32}), at::zeros({9, 16}), {}, {}}, 8);
      },
      test::ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("9 tokens"), HasSubstr("8 positions"))));
}

TEST(Connectors, refuse_prompt_embeddings_of_another_encoder_naming_the_numbers) {
  Case the_case("ltx23");
  TensorSource source(the_case.tensors);

  EXPECT_THAT(
      [&] {
        text_context(the_case.connectors, source, at::zeros({3, 12, 60}), the_case.mask(), at::kFloat);
      },
      test::ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("[3, 12, 60]"), HasSubstr("48"))));
  EXPECT_THAT(
      [&] {
        text_context(the_case.connectors, source, the_case.states(), at::ones({3, 11}), at::kFloat);
      },
      test::ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("[3, 11]"), HasSubstr("[3, 12]"))));
}

TEST(FeatureAccumulator, refuses_states_out_of_order_and_too_few) {
  Case the_case("ltx23");
  TensorSource source(the_case.tensors);
  at::Tensor states = the_case.real_states(0);
  FeatureAccumulator accumulator(the_case.connectors.projections, source, {states.size(0)}, at::kFloat);
  accumulator.add(0, 0, states.select(2, 0));

  EXPECT_THAT([&] { accumulator.add(0, 2, states.select(2, 2)); },
              test::ThrowsError(ErrorKind::internal, HasSubstr("state 2")));
  EXPECT_THAT([&] { accumulator.finish(); }, test::ThrowsError(ErrorKind::internal, HasSubstr("1 of 4")));
}

TEST(Connectors, of_another_width_are_refused_from_the_table) {
  Fixture fixture("connectors/ltx23");
  nlohmann::json config = fixture.config();
  config["caption_channels"] = 16;
  Connectors connectors(ConnectorsConfig::parse(config, "config.json"));

  EXPECT_THAT([&] { test::open_weights(fixture.weights_path(), connectors.groups()); },
              test::ThrowsError(ErrorKind::mismatch, HasSubstr("video_text_proj_in.weight")));
}

}  // namespace
}  // namespace sluice::ltx2
