#pragma once
// The configuration of the audio-video transformer, under the names diffusers gives its keys.

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace sluice::ltx2 {

// The streams that a model works with, or that something concerns.
enum class Modalities { both, video, audio };

constexpr bool has_video(Modalities modalities) {
  return modalities != Modalities::audio;
}
constexpr bool has_audio(Modalities modalities) {
  return modalities != Modalities::video;
}

struct StreamConfig {  // one of the two streams, video or audio
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t text_dim = 0;     // width of the text embeddings this stream attends to
  std::int64_t max_seconds = 0;  // pos_embed_max_pos: where RoPE's time axis ends
  bool gated_attention = false;
  bool text_modulation = false;  // cross_attn_mod: 9 modulation rows instead of 6
  bool ff_bias = true;

  std::int64_t width() const { return heads * head_dim; }
};

struct TransformerConfig {
  StreamConfig video;
  StreamConfig audio;
  std::int64_t num_layers = 0;
  std::int64_t cross_width = 0;  // audio_cross_attention_dim: RoPE width of audio-to-video and video-to-audio
  std::int64_t caption_channels = 0;
  double norm_eps = 1e-6;
  bool attention_bias = true;
  bool attention_out_bias = true;

  std::array<std::int64_t, 3> vae_scale = {8, 32, 32};  // pixels a latent: time, height, width
  std::int64_t audio_scale = 4;                         // mel frames a latent
  std::int64_t audio_sampling_rate = 16000;
  std::int64_t audio_hop_length = 160;
  std::int64_t base_height = 2048;
  std::int64_t base_width = 2048;
  std::int64_t causal_offset = 1;
  double rope_theta = 10000.0;
  bool rope_double_precision = true;
  std::string rope_type;  // "split" or "interleaved"

  double timestep_scale = 1000;
  double cross_timestep_scale = 1000;
  bool caption_projection = false;   // use_prompt_embeddings (2.0): text is projected inside the transformer
  bool perturbed_attention = false;  // spatio-temporal guidance is possible
  bool prompt_adaln = true;          // false (2.5): prompt modulation has the static table only
  bool keyframe_embedding = false;   // 2.5

  bool prompt_modulation() const { return video.text_modulation || audio.text_modulation; }
  double audio_latents_per_second() const;

  // Keys and defaults as LTX2VideoTransformer3DModel of diffusers 0.42.1.  `where` names the source in
  // errors.
  static TransformerConfig parse(const nlohmann::json& config, const std::string& where);
};

}  // namespace sluice::ltx2
