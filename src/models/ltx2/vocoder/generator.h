#pragma once
// The network from mel frames to a wave that the vocoder runs twice (reference: LTX2Vocoder of diffusers
// 0.42.1): transposed convolutions raise the rate, after each the mean of parallel residual blocks.

#include "models/ltx2/vocoder/activation.h"
#include "models/ltx2/vocoder/config.h"
#include "nn/conv.h"
#include "weights/parameters.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sluice::ltx2 {

struct GeneratorResidualStep {  // x + conv2(act2(conv1(act1(x))))
  AntialiasedSnake act1, act2;
  nn::Conv conv1, conv2;
};

using GeneratorResidualBlock = std::vector<GeneratorResidualStep>;  // one step a dilation

struct GeneratorStage {
  nn::Conv upsampler;
  std::vector<GeneratorResidualBlock> resnets;  // one a kernel size, all on the same input
};

struct Generator {
  GeneratorConfig config;
  nn::Conv conv_in, conv_out;
  std::vector<GeneratorStage> stages;
  AntialiasedSnake act_out;
};

// The generator must not move afterwards: the scope's group holds addresses of its slots.
void declare(const weights::ParameterScope& scope, Generator& generator, const GeneratorConfig& config);

// mel: [batch, wave channels, frames, bins], f32 -> wave [batch, wave channels, frames · total_factor].
at::Tensor generate_wave(const Generator& generator, const at::Tensor& mel);

// What a clip of so many mel frames is computed in, from shapes alone.
struct GeneratorMemory {
  std::int64_t wave = 0;       // values of a tensor, at most; there are kWaves
  std::int64_t activated = 0;  // values of one more, where an activation is computed as a whole
  std::int64_t scratch = 0;    // bytes of the reused block (kernels/scratch.h)

  static constexpr std::int64_t kWaves = 4;
  std::int64_t bytes() const { return (kWaves * wave + activated) * std::int64_t{sizeof(float)} + scratch; }
};
GeneratorMemory generator_memory(const GeneratorConfig& config, std::int64_t frames);

}  // namespace sluice::ltx2
