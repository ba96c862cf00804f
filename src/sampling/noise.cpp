#include "sampling/noise.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace sluice::sampling {

NoiseSource::NoiseSource(std::uint64_t seed) : generator_(at::detail::createCPUGenerator(seed)) {}

at::Tensor NoiseSource::draw(at::IntArrayRef shape) {
  return at::randn(shape, generator_, at::kFloat);
}

InitialNoise draw_initial_noise(NoiseSource& source, std::int64_t batch, const VideoLatentShape& video,
                                const AudioLatentShape& audio) {
  InitialNoise noise;
  noise.video = source.draw({batch, video.channels, video.frames, video.height, video.width});
  noise.audio = source.draw({batch, audio.channels, audio.length, audio.mel_bins});
  return noise;
}

at::Tensor add_noise(const at::Tensor& clean, const at::Tensor& noise, double level) {
  return (noise * level).add_(clean * (1.0 - level));
}

}  // namespace sluice::sampling
