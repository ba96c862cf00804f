#pragma once
// Random noise: PyTorch's CPU generator (Mersenne Twister) on every device, drawn in the order of the
// reference pipelines, so that a seed means here what it means there.  Numbers are f32, standard normal.
// PyTorch has two ways to make them: below 16 elements one by one, from 16 on in blocks; the block way uses
// vector instructions where the CPU has them, so that other CPUs may differ in the last bit, as with PyTorch
// itself.

#include "sampling/latents.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::sampling {

// One stream of random numbers; each draw continues where the last one ended.  One thread at a time.
class NoiseSource {
 public:
  explicit NoiseSource(std::uint64_t seed);  // as torch.Generator().manual_seed(seed)

  at::Tensor draw(at::IntArrayRef shape);  // f32

 private:
  at::Generator generator_;
};

struct InitialNoise {
  at::Tensor video;  // [batch, channels, frames, height, width]
  at::Tensor audio;  // [batch, channels, length, mel_bins]
};

// Text to video: the video first, then the audio from the same stream, both before packing.  So the audio's
// noise depends on the size of the video.
InitialNoise draw_initial_noise(NoiseSource& source, std::int64_t batch, const VideoLatentShape& video,
                                const AudioLatentShape& audio);

// level · noise + (1 - level) · clean: latents brought back to a noise level, 1 = noise alone.
// Source: _create_noised_state of diffusers' LTX2Pipeline.
at::Tensor add_noise(const at::Tensor& clean, const at::Tensor& noise, double level);

}  // namespace sluice::sampling
