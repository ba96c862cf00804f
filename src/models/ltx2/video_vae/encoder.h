#pragma once
// The encoder of the video autoencoder (reference: AutoencoderKLLTX2Video of diffusers 0.42.1, encode half):
// frames to latents.  Holds the weights' slots; encode_stream.h runs it.  Latent statistics are the decoder's
// (decoder.h).

#include "models/ltx2/video_vae/decoder.h"
#include "models/ltx2/video_vae/encoder_config.h"
#include "nn/conv.h"
#include "weights/component.h"

#include <vector>

namespace sluice::ltx2 {

struct VideoDownBlock {
  std::vector<VideoResidualBlock> resnets;
  nn::Conv downsampler;
};

class VideoEncoder {
 public:
  explicit VideoEncoder(VideoEncoderConfig config);
  VideoEncoder(const VideoEncoder&) = delete;
  VideoEncoder& operator=(const VideoEncoder&) = delete;

  const VideoEncoderConfig& config() const { return config_; }
  const weights::ParameterGroup& encoder_group() const { return encoder_group_; }  // encoder.*
  std::vector<const weights::ParameterGroup*> groups() const { return {&encoder_group_}; }

  // While encoder_group() is leased.
  const nn::Conv& conv_in() const { return conv_in_; }
  const std::vector<VideoDownBlock>& down_blocks() const { return down_blocks_; }
  const std::vector<VideoResidualBlock>& mid_block() const { return mid_block_; }
  const nn::Conv& conv_out() const { return conv_out_; }

 private:
  VideoEncoderConfig config_;
  nn::Conv conv_in_, conv_out_;
  std::vector<VideoDownBlock> down_blocks_;
  std::vector<VideoResidualBlock> mid_block_;
  weights::ParameterGroup encoder_group_;
};

}  // namespace sluice::ltx2
