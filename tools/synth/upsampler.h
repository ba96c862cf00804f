#pragma once
// A synthetic latent upsampler: one file of its own in the published layout, for tests of two-stage
// generation.

#include "synth/plan.h"
#include "synth/sizes.h"

#include <cstdint>
#include <filesystem>

namespace sluice::synth {

struct UpsamplerSizes {
  std::int64_t channels = 128;  // of the latents
  std::int64_t width = 1024;    // a multiple of 32
  std::int64_t blocks = 4;      // a stage
  bool spatial = true, temporal = false;
};

// For latents of so many channels: the published sizes where they are the published ones, else one block of
// the least width that is no narrower than the latents.
UpsamplerSizes upsampler_sizes(std::int64_t channels);

std::int64_t latent_channels(const Sizes& sizes);  // of the checkpoint's video autoencoder

// Error(bad_input) from the model's own parser for sizes that it refuses.
Plan plan_upsampler(const std::filesystem::path& file, const UpsamplerSizes& sizes,
                    const PlanOptions& options);

}  // namespace sluice::synth
