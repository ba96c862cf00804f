#pragma once
// A small encoder of random weights, and clips for it.

#include "models/ltx2/video_vae/encode_stream.h"
#include "support/fixture.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice::ltx2 {

// Random weights in the published block order, wide enough that no norm goes over values that are all nearly
// zero, where rounding would count a thousand times.
class SmallEncoder {
 public:
  explicit SmallEncoder(const nlohmann::json& changes = nlohmann::json::object())
      : encoder(VideoEncoderConfig::parse(merged(changes))), weights(random_weights()), source(weights) {}

  EncodedFrames whole(const at::Tensor& frames) {
    return encode_video(encoder, source, at::kFloat, frames, {.frames = frames.size(2)});
  }

  // Pushes `part` frames at once, that are encoded in pieces of `piece`.
  EncodedFrames streamed(const at::Tensor& frames, std::int64_t part, std::int64_t piece) {
    std::vector<at::Tensor> means, logvars;
    VideoEncodeStream stream(encoder, source, at::kFloat,
                             [&](const EncodedFrames& latents) {
                               means.push_back(latents.mean);
                               logvars.push_back(latents.logvar);
                             },
                             {.frames = piece});
    for (std::int64_t start = 0; start < frames.size(2); start += part) {
      const std::int64_t n = std::min(part, frames.size(2) - start);
      stream.push(frames.narrow(2, start, n), start + n == frames.size(2) ? Last::yes : Last::no);
    }
    return {.mean = at::cat(means, 2), .logvar = at::cat(logvars, 2)};
  }

  static nlohmann::json merged(const nlohmann::json& changes) {
    nlohmann::json config = test::Fixture("video_vae/encode_f1").config();
    config.update({{"latent_channels", 16}, {"block_out_channels", {32, 64, 64, 64}}});
    config.update(changes);
    return config;
  }

  VideoEncoder encoder;
  test::TensorMap weights;
  test::TensorSource source;

 private:
  test::TensorMap random_weights() const {
    at::manual_seed(11);
    test::TensorMap weights;
    for (const weights::Parameter& parameter : encoder.encoder_group().parameters) {
      at::Tensor tensor = at::randn(parameter.shape);
      if (tensor.dim() > 1) tensor /= std::sqrt(static_cast<double>(tensor.numel() / tensor.size(0)));
      weights[parameter.name] = tensor;
    }
    return weights;
  }
};

inline at::Tensor random_frames(std::int64_t frames, std::int64_t height = 64, std::int64_t width = 96) {
  at::manual_seed(frames);
  return at::rand({1, 3, frames, height, width}) * 2 - 1;
}

}  // namespace sluice::ltx2
