#pragma once
// The decoder of the video autoencoder (reference: AutoencoderKLLTX2Video of diffusers 0.42.1, decode half):
// config and weight slots.  It computes nothing itself: decode_stream.h runs it over time.

#include "models/ltx2/video_vae/blocks.h"
#include "models/ltx2/video_vae/config.h"
#include "models/ltx2/video_vae/latent_statistics.h"
#include "nn/conv.h"
#include "weights/component.h"

#include <vector>

namespace sluice::ltx2 {

struct VideoUpBlock {
  nn::Conv upsampler;
  std::vector<VideoResidualBlock> resnets;
};

class VideoDecoder {
 public:
  explicit VideoDecoder(VideoVaeConfig config);
  VideoDecoder(const VideoDecoder&) = delete;
  VideoDecoder& operator=(const VideoDecoder&) = delete;

  const VideoVaeConfig& config() const { return config_; }

  const weights::ParameterGroup& statistics_group() const {
    return statistics_group_;
  }  // latents_mean, latents_std
  const weights::ParameterGroup& decoder_group() const { return decoder_group_; }  // decoder.*
  std::vector<const weights::ParameterGroup*> groups() const { return {&statistics_group_, &decoder_group_}; }

  // What else a video autoencoder's files hold, and why decoding does not read it; for weights::account().
  static std::vector<weights::IgnoreRule> ignore_rules();

  // Valid while the group is leased.
  const LatentStatistics& statistics() const { return statistics_; }
  const nn::Conv& conv_in() const { return conv_in_; }
  const std::vector<VideoResidualBlock>& mid_block() const { return mid_block_; }
  const std::vector<VideoUpBlock>& up_blocks() const { return up_blocks_; }
  const nn::Conv& conv_out() const { return conv_out_; }

 private:
  void declare_decoder();

  VideoVaeConfig config_;
  LatentStatistics statistics_;
  nn::Conv conv_in_, conv_out_;
  std::vector<VideoResidualBlock> mid_block_;
  std::vector<VideoUpBlock> up_blocks_;
  weights::ParameterGroup statistics_group_;
  weights::ParameterGroup decoder_group_;
};

}  // namespace sluice::ltx2
