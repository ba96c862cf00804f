#pragma once
// A small decoder of random weights, and clips for it.

#include "models/ltx2/video_vae/decode_stream.h"
#include "support/fixture.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice::ltx2 {

// A decoder of random weights in the published block order.  Wider than the fixtures': where a norm goes over
// two channels that both are nearly zero, rounding counts a thousand times.
class SmallDecoder {
 public:
  explicit SmallDecoder(const nlohmann::json& changes = nlohmann::json::object())
      : decoder(VideoVaeConfig::parse(merged(changes))), weights(random_weights()), source(weights) {}

  at::Tensor whole(const at::Tensor& latents) {
    return decode_video(decoder, source, latents, PieceLimit::none());
  }

  // Decodes in chunks of `chunk` latent frames, in pieces of at most `piece` frames.
  at::Tensor streamed(const at::Tensor& latents, std::int64_t chunk, std::int64_t piece) {
    std::vector<at::Tensor> frames;
    VideoDecodeStream stream(decoder, source, [&](const at::Tensor& decoded) { frames.push_back(decoded); },
                             {.frames = piece});
    for (std::int64_t start = 0; start < latents.size(2); start += chunk) {
      const std::int64_t n = std::min(chunk, latents.size(2) - start);
      stream.push(latents.narrow(2, start, n), start + n == latents.size(2) ? Last::yes : Last::no);
    }
    return at::cat(frames, 2);
  }

  static nlohmann::json merged(const nlohmann::json& changes) {
    nlohmann::json config = test::Fixture("video_vae/decode_f1").config();
    config["decoder_block_out_channels"] = {16, 32, 32, 64};
    config.update(changes);
    return config;
  }

  VideoDecoder decoder;
  test::TensorMap weights;
  test::TensorSource source;

 private:
  test::TensorMap random_weights() const {
    at::manual_seed(7);
    test::TensorMap weights;
    for (const weights::ParameterGroup* group : decoder.groups()) {
      for (const weights::Parameter& parameter : group->parameters) {
        at::Tensor tensor = at::randn(parameter.shape);
        if (tensor.dim() > 1) tensor /= std::sqrt(static_cast<double>(tensor.numel() / tensor.size(0)));
        weights[parameter.name] = tensor;
      }
    }
    return weights;
  }
};

inline at::Tensor random_latents(std::int64_t frames, std::int64_t height = 2, std::int64_t width = 3) {
  at::manual_seed(frames);
  return at::randn({1, 4, frames, height, width});
}

}  // namespace sluice::ltx2
