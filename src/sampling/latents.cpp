#include "sampling/latents.h"

#include <ATen/ATen.h>

#include <cmath>

namespace sluice::sampling {

std::int64_t latent_frames(std::int64_t frames, const VideoCompression& compression) {
  return (frames - 1) / compression.frames + 1;
}

std::int64_t audio_latent_length(std::int64_t frames, double fps, const AudioRate& rate) {
  const double seconds = static_cast<double>(frames) / fps;
  const double latents_per_second = static_cast<double>(rate.sample_rate) /
                                    static_cast<double>(rate.hop_length) /
                                    static_cast<double>(rate.downsample);
  // The default rounding mode of IEEE arithmetic is half to even, as Python's round().
  return static_cast<std::int64_t>(std::nearbyint(seconds * latents_per_second));
}

std::int64_t audio_latent_length(std::int64_t frames, Rational fps, const AudioRate& rate) {
  return audio_latent_length(frames, fps.value(), rate);
}

at::Tensor pack_video(const at::Tensor& latents) {
  return latents.flatten(2).transpose(1, 2).contiguous();
}

at::Tensor unpack_video(const at::Tensor& tokens, const VideoLatentShape& shape) {
  return tokens.transpose(1, 2).unflatten(2, {shape.frames, shape.height, shape.width}).contiguous();
}

at::Tensor pack_audio(const at::Tensor& latents) {
  return latents.transpose(1, 2).flatten(2).contiguous();
}

at::Tensor unpack_audio(const at::Tensor& tokens, const AudioLatentShape& shape) {
  return tokens.unflatten(2, {shape.channels, shape.mel_bins}).transpose(1, 2).contiguous();
}

}  // namespace sluice::sampling
