#pragma once
// Latents: their shapes for a clip's size, and packing into the transformer's tokens.  Source:
// prepare_latents, prepare_audio_latents and _pack_* of diffusers' LTX2Pipeline.

#include <sluice/units.h>

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::sampling {

struct VideoLatentShape {
  std::int64_t channels = 0;
  std::int64_t frames = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t tokens() const { return frames * height * width; }
  bool operator==(const VideoLatentShape&) const = default;
};

struct AudioLatentShape {
  std::int64_t channels = 0;
  std::int64_t length = 0;  // tokens
  std::int64_t mel_bins = 0;

  bool operator==(const AudioLatentShape&) const = default;
};

// What one latent stands for: the video autoencoder's factors, and the audio's rates.
struct VideoCompression {
  std::int64_t frames = 8;
  std::int64_t pixels = 32;
};

struct AudioRate {
  std::int64_t sample_rate = 16000;
  std::int64_t hop_length = 160;  // samples a mel frame
  std::int64_t downsample = 4;    // mel frames a latent
};

// (frames - 1) / 8 + 1, rounded down: callers see to it that frames = 8k + 1.
std::int64_t latent_frames(std::int64_t frames, const VideoCompression& compression = {});

// round(frames / fps · 25), half to even, evaluated in f64 in the reference's order.  121 at 24: 126; 25 at
// 50: 12. 0 for less than 0.02 s.
std::int64_t audio_latent_length(std::int64_t frames, double fps, const AudioRate& rate = {});
std::int64_t audio_latent_length(std::int64_t frames, Rational fps, const AudioRate& rate = {});

at::Tensor pack_video(
    const at::Tensor& latents);  // [B, C, F, H, W] -> [B, F·H·W, C], order frame, row, column
at::Tensor unpack_video(const at::Tensor& tokens, const VideoLatentShape& shape);  // and back
at::Tensor pack_audio(const at::Tensor& latents);  // [B, C, L, M] -> [B, L, C·M], channel = c · M + mel
at::Tensor unpack_audio(const at::Tensor& tokens, const AudioLatentShape& shape);

}  // namespace sluice::sampling
