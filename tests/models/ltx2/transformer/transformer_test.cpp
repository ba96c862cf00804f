#include "models/ltx2/transformer/transformer.h"

#include "support/fixture.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::ltx2 {
namespace {

using test::Fixture;

// Notes what is leased, in order.
class FixedSource final : public weights::WeightSource {
 public:
  explicit FixedSource(test::TensorMap tensors) : source_(std::move(tensors)) {}

  weights::WeightLease acquire(const weights::ParameterGroup& group) override {
    leased_.push_back(group.name);
    return source_.acquire(group);
  }
  at::Tensor rows(const weights::Parameter& table, std::span<const std::int64_t> ids) override {
    return source_.rows(table, ids);
  }
  void check() const override {}
  Bytes bytes_read() const override { return 0; }

  const std::vector<std::string>& leased() const { return leased_; }

 private:
  test::TensorSource source_;
  std::vector<std::string> leased_;
};

at::Tensor input_or_none(const Fixture& fixture, std::string_view name) {
  return fixture.has_input(name) ? fixture.input(name) : at::Tensor();
}

Pass plain_pass(const Fixture& fixture) {
  Pass pass;
  pass.video = {.latents = fixture.input("hidden_states"),
                .text = fixture.input("encoder_hidden_states"),
                .text_mask = input_or_none(fixture, "encoder_attention_mask"),
                .timestep = fixture.input("timestep"),
                .sigma = fixture.input("sigma")};
  pass.audio = {.latents = fixture.input("audio_hidden_states"),
                .text = fixture.input("audio_encoder_hidden_states"),
                .text_mask = input_or_none(fixture, "audio_encoder_attention_mask"),
                .timestep = fixture.input("timestep"),
                .sigma = fixture.input("sigma")};
  return pass;
}

class PlainCase : public testing::Test {
 protected:
  Fixture fixture{"transformer/plain"};
  Transformer model{TransformerConfig::parse(fixture.config(), "transformer/plain")};
  test::TensorMap tensors = test::read_tensors(fixture.weights_path());
  FixedSource source{tensors};
  VideoGrid grid{fixture.params().at("num_frames"), fixture.params().at("height"),
                 fixture.params().at("width")};
  Positions positions =
      make_positions(model.config(), video_coordinates(model.config(), grid, fixture.params().at("fps")),
                     audio_coordinates(model.config(), fixture.params().at("audio_num_frames")));
};

TEST_F(PlainCase, gives_the_velocities_of_the_reference) {
  auto out = model.forward(source, positions, {plain_pass(fixture)});

  EXPECT_TRUE(fixture.matches("sample", out[0].video));
  EXPECT_TRUE(fixture.matches("audio_sample", out[0].audio));
}

TEST_F(PlainCase, leases_each_block_once_however_many_passes_run) {
  model.forward(source, positions, {plain_pass(fixture), plain_pass(fixture), plain_pass(fixture)});

  EXPECT_THAT(source.leased(),
              testing::ElementsAre("transformer entrance", "transformer_blocks.0", "transformer_blocks.1",
                                   "transformer_blocks.2", "transformer exit"));
}

TEST_F(PlainCase, passes_that_run_together_do_not_touch_each_other) {
  Pass isolated = plain_pass(fixture);
  isolated.isolate_modalities = true;

  auto together = model.forward(source, positions, {plain_pass(fixture), isolated});
  auto alone = model.forward(source, positions, {isolated});

  EXPECT_TRUE(at::equal(together[1].video, alone[0].video));
  EXPECT_TRUE(at::equal(together[1].audio, alone[0].audio));
  EXPECT_FALSE(at::equal(together[0].video, together[1].video));
}

TEST_F(PlainCase, a_timestep_a_token_equals_the_same_timestep_for_all) {
  Pass by_token = plain_pass(fixture);
  by_token.video.timestep = by_token.video.timestep.unsqueeze(1).repeat({1, grid.tokens()});

  auto want = model.forward(source, positions, {plain_pass(fixture)});
  auto got = model.forward(source, positions, {by_token});

  EXPECT_TRUE(test::all_close(got[0].video, want[0].video, {.atol = 1e-6, .rtol = 1e-5}));
}

TEST_F(PlainCase, bf16_weights_computed_in_f32_equal_widened_weights) {
  FixedSource narrow{test::converted(tensors, at::kBFloat16)};
  FixedSource widened{test::converted(test::converted(tensors, at::kBFloat16), at::kFloat)};

  auto got = model.forward(narrow, positions, {plain_pass(fixture)});
  auto want = model.forward(widened, positions, {plain_pass(fixture)});

  EXPECT_TRUE(test::all_close(got[0].video, want[0].video, {.atol = 1e-6, .rtol = 1e-6}));
}

TEST_F(PlainCase, an_observer_that_throws_stops_between_blocks) {
  auto stop = [](std::int64_t block, const std::vector<Streams>&) {
    if (block == 1) throw Error(ErrorKind::interrupted, "stopped");
  };

  EXPECT_THROW(model.forward(source, positions, {plain_pass(fixture)}, stop), Error);
  EXPECT_EQ(source.leased().back(), "transformer_blocks.1");
}

TEST(Transformer, refuses_guidance_by_perturbation_where_the_model_has_none) {
  Fixture fixture("transformer/plain");
  auto config = fixture.config();
  config["perturbed_attn"] = false;
  Transformer model(TransformerConfig::parse(config, "here"));
  FixedSource source(test::read_tensors(fixture.weights_path()));
  Pass pass = plain_pass(fixture);
  pass.perturbed_blocks = {1};

  EXPECT_THROW(model.forward(source, {}, {pass}), Error);
}

TEST(TransformerConfig, refuses_by_name_what_is_not_implemented) {
  auto config = Fixture("transformer/plain").config();
  config["patch_size"] = 2;

  try {
    TransformerConfig::parse(config, "model.safetensors");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("model.safetensors"), testing::HasSubstr("patch_size")));
  }
}

TEST(Modulation, sinusoids_have_their_cosines_first) {
  at::Tensor sinusoid = timestep_sinusoid(at::tensor({0.0f, 1000.0f}));

  EXPECT_EQ(sinusoid.sizes(), (std::vector<std::int64_t>{2, 256}));
  EXPECT_TRUE(at::equal(sinusoid[0].slice(0, 0, 128), at::ones({128})));  // cosines first
  EXPECT_TRUE(at::equal(sinusoid[0].slice(0, 128, 256), at::zeros({128})));
}

}  // namespace
}  // namespace sluice::ltx2
