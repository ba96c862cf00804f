#pragma once
// What a phase has to compute, counted from configs and shapes: the time a plan predicts is this, divided by
// what the machine does of each a second.

#include "models/ltx2/audio_vae/config.h"
#include "models/ltx2/connectors/connectors_config.h"
#include "models/ltx2/text/gemma_config.h"
#include "models/ltx2/transformer/config.h"
#include "models/ltx2/video_vae/config.h"
#include "models/ltx2/vocoder/config.h"

#include <cstdint>
#include <map>

namespace sluice::pipeline {

struct Work {
  std::map<std::int64_t, double> linear;  // rows -> weight elements that so many rows are multiplied with
  double attention = 0;                   // multiplications
  double conv3d = 0;                      // multiplications
  double conv1d = 0;
  double elements = 0;  // of activations read and written by operations that only stream them

  Work& operator+=(const Work& other);
};
Work operator*(double times, const Work& work);

struct StreamTokens {
  std::int64_t video = 0;
  std::int64_t audio = 0;
  std::int64_t text = 0;
};

Work block_work(const ltx2::TransformerConfig& config, const StreamTokens& tokens);  // one block, one pass
Work gemma_layer_work(const ltx2::GemmaConfig& config, std::int64_t tokens);
// Projections of a prompt of `tokens`, connectors over `positions`.
Work connectors_work(const ltx2::ConnectorsConfig& config, std::int64_t tokens, std::int64_t positions);
// A whole decode of latent frames x height x width.
Work video_decode_work(const ltx2::VideoVaeConfig& config, std::int64_t frames, std::int64_t height,
                       std::int64_t width);
Work sound_decode_work(const ltx2::AudioVaeConfig& autoencoder, const ltx2::VocoderConfig& vocoder,
                       std::int64_t latents);

}  // namespace sluice::pipeline
