#pragma once
// Carries out a DecodePlan: latents go in, frames come out in order as soon as they are settled, in every
// way.

#include "models/ltx2/video_vae/decode_plan.h"
#include "models/ltx2/video_vae/decode_stream.h"

#include <filesystem>

namespace sluice::ltx2 {

// latents: [batch, latent_channels, F, h, w] as plan.clip says, denormalised; they are converted to
// plan.dtypes.compute.  `folder`: where frames wait in a file without a name, if plan.file_bytes is not 0.
// Error(internal) for a clip of another shape; Error(io) of that file; what `sink` throws.
void decode_clip(const VideoDecoder& decoder, weights::WeightSource& source, const at::Tensor& latents,
                 const DecodePlan& plan, const FrameSink& sink, const std::filesystem::path& folder);

}  // namespace sluice::ltx2
