#pragma once
// The latent upsampler (reference: LTX2LatentUpsamplerModel of diffusers 0.42.1): denormalised video latents
// to such of twice the size, in space, time or both.  Its group norms average over the whole clip, so the
// clip goes through as one.

#include "models/ltx2/upsampler/clip_norm.h"
#include "models/ltx2/upsampler/config.h"
#include "models/ltx2/upsampler/growth.h"
#include "nn/conv.h"
#include "weights/component.h"
#include "weights/weight_source.h"

#include <sluice/units.h>

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace sluice::ltx2 {

struct UpsamplerBlock {
  nn::Conv conv1, conv2;
  GroupNorm norm1, norm2;
};

class LatentUpsampler {
 public:
  explicit LatentUpsampler(UpsamplerConfig config);
  LatentUpsampler(const LatentUpsampler&) = delete;
  LatentUpsampler& operator=(const LatentUpsampler&) = delete;

  const UpsamplerConfig& config() const { return config_; }
  std::vector<const weights::ParameterGroup*> groups() const;  // in the order of a pass
  LatentSize upsampled(const LatentSize& size) const { return growth_.grown(size); }

  // What else its files hold, and why it is not read; for weights::account().
  static std::vector<weights::IgnoreRule> ignore_rules(const UpsamplerConfig& config);

  // latents: [1, in_channels, F, H, W], f32, denormalised -> the same of upsampled(size), f32.  `compute`:
  // f32 or bf16; sums of the norms are f64.  Leases one group at a time.
  at::Tensor forward(weights::WeightSource& source, const at::Tensor& latents, at::ScalarType compute) const;

 private:
  void declare_blocks(std::vector<UpsamplerBlock>& blocks, const std::string& name);
  at::Tensor run_blocks(weights::WeightSource& source, const std::vector<UpsamplerBlock>& blocks,
                        std::size_t first_group, at::Tensor x) const;
  at::Tensor initial(weights::WeightSource& source, const at::Tensor& latents, at::ScalarType compute) const;
  at::Tensor final(weights::WeightSource& source, const at::Tensor& x) const;
  NormSpan span() const { return config_.frame_by_frame ? NormSpan::frame : NormSpan::clip; }

  UpsamplerConfig config_;
  Growth growth_;
  nn::Conv initial_conv_, final_conv_, upsample_;
  GroupNorm initial_norm_;
  at::Tensor blur_;  // only where growth_.blurs()
  std::vector<UpsamplerBlock> before_, after_;
  std::vector<weights::ParameterGroup> groups_;  // initial, each before_, upsampler, each after_, final
};

// What forward() takes at most beside the weights in their files, with its input and result.
Bytes upsample_memory(const UpsamplerConfig& config, const LatentSize& size, at::ScalarType compute);

struct UpsamplerFile {
  weights::ComponentTable table;
  std::unique_ptr<LatentUpsampler> model;
  weights::Accounting accounting;
  std::string version;  // of the model it was trained for, where the file says
};

// A single file with its config in the metadata, or a diffusers folder (config.json and weights, or its
// latent_upsampler/).  Reads headers only.  Error(bad_input / mismatch): no upsampler, sizes that do not fit
// their config.
UpsamplerFile open_upsampler(const std::filesystem::path& path);

}  // namespace sluice::ltx2
