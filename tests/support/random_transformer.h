#pragma once
// A transformer of two blocks with random weights, small, but with tensors of more than a mebibyte.

#include "models/ltx2/transformer/transformer.h"
#include "support/fixture.h"

#include <ATen/ATen.h>

namespace sluice::test {

struct RandomTransformer {
  static constexpr ltx2::VideoGrid kGrid{8, 16, 16};
  static constexpr std::int64_t kSound = 2100, kText = 2000;  // tokens

  static ltx2::TransformerConfig config() {
    ltx2::TransformerConfig config;
    config.video = {.in_channels = 16,
                    .out_channels = 16,
                    .heads = 8,
                    .head_dim = 64,
                    .text_dim = 512,
                    .max_seconds = 20,
                    .gated_attention = true,
                    .text_modulation = true};
    config.audio = config.video;
    config.audio.head_dim = 32;
    config.audio.text_dim = 256;
    config.num_layers = 2;
    config.cross_width = config.audio.width();
    config.rope_type = "split";
    config.perturbed_attention = true;
    return config;
  }

  TensorMap random_weights() const {
    TensorMap tensors;
    for (const weights::ParameterGroup* group : model.groups()) {
      for (const weights::Parameter& parameter : group->parameters)
        tensors[parameter.name] = at::randn(parameter.shape).mul_(0.05).to(at::kBFloat16);
    }
    return tensors;
  }

  static ltx2::StreamInput stream(const ltx2::StreamConfig& of, std::int64_t tokens,
                                  const at::Tensor& timestep, at::ScalarType dtype) {
    return {.latents = at::randn({1, tokens, of.in_channels}).to(dtype),
            .text = at::randn({1, kText, of.text_dim}).to(dtype),
            .timestep = timestep,
            .sigma = at::full({1}, 500.0F)};
  }

  ltx2::Pass pass(const at::Tensor& video_timestep, at::ScalarType dtype) const {
    return {.video = stream(model.config().video, kGrid.tokens(), video_timestep, dtype),
            .audio = stream(model.config().audio, kSound, at::full({1}, 500.0F), dtype)};
  }

  ltx2::Transformer model{config()};
  TensorSource source{random_weights()};
  ltx2::Positions positions =
      ltx2::make_positions(model.config(), video_coordinates(model.config(), kGrid, 24),
                           audio_coordinates(model.config(), kSound));
};

}  // namespace sluice::test
