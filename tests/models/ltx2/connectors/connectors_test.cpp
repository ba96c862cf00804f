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
  explicit Case(const std::string& name)
      : fixture("connectors/" + name),
        connectors(ConnectorsConfig::parse(fixture.config(), "manifest.json")),
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

TextFeatures accumulated(const Case& the_case, weights::WeightSource& source, const at::Tensor& states,
                         FeatureLimits limits) {
  FeatureAccumulator accumulator(the_case.connectors.projections, source, states.size(0), at::kFloat, limits);
  for (std::int64_t state = 0; state < states.size(2); ++state)
    accumulator.add(state, states.select(2, state));
  return accumulator.finish();
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

TEST_P(ConnectorsParity, comes_to_the_same_state_by_state_whatever_is_held) {
  Case the_case(GetParam());
  TensorSource source(the_case.tensors);
  const at::Tensor states = the_case.real_states(0);
  TextFeatures whole = accumulated(the_case, source, states, {});
  const auto state_bytes = static_cast<Bytes>(states.size(0) * states.size(1) * 4);

  for (Bytes held : {Bytes(1), state_bytes * 2, state_bytes * 3}) {
    for (Bytes gathered : {Bytes(1), Bytes(1000), MiB(1)}) {
      TextFeatures parts =
          accumulated(the_case, source, states, {.held_states = held, .gathered_columns = gathered});

      EXPECT_LT(test::error_of_max(parts.video, whole.video), 1e-6) << held << ", " << gathered;
      EXPECT_LT(test::error_of_max(parts.audio, whole.audio), 1e-6) << held << ", " << gathered;
    }
  }
}

TEST_P(ConnectorsParity, pads_prompts_on_the_left) {
  Case the_case(GetParam());
  TensorSource source(the_case.tensors);
  std::vector<TextFeatures> prompts;
  for (std::int64_t row = 0; row < the_case.mask().size(0); ++row)
    prompts.push_back(accumulated(the_case, source, the_case.real_states(row), {}));

  TextContext context = connect(the_case.connectors, source, prompts, the_case.mask().size(1), at::kFloat);

  EXPECT_TRUE(the_case.fixture.matches("video_embeds", the_case.comparable(context.video_text)));
  EXPECT_TRUE(the_case.fixture.matches("audio_embeds", the_case.comparable(context.audio_text)));
  EXPECT_TRUE(the_case.fixture.matches("attention_mask", context.mask));
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
  std::vector<TextFeatures> prompts = {accumulated(the_case, source, the_case.real_states(0), {})};

  EXPECT_THAT(
      [&] { connect(the_case.connectors, source, prompts, 14, at::kFloat); },
      test::ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("14 positions"), HasSubstr("4 registers")),
                        HasSubstr("12 or 16")));
}

TEST(Connectors, refuse_a_prompt_longer_than_the_row_naming_the_numbers) {
  Case the_case("ltx23");
  TensorSource source(the_case.tensors);
  std::vector<TextFeatures> prompts = {{at::zeros({9, 32}), at::zeros({9, 16})}};

  EXPECT_THAT(
      [&] { connect(the_case.connectors, source, prompts, 8, at::kFloat); },
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
  FeatureAccumulator accumulator(the_case.connectors.projections, source, states.size(0), at::kFloat);
  accumulator.add(0, states.select(2, 0));

  EXPECT_THAT([&] { accumulator.add(2, states.select(2, 2)); },
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
