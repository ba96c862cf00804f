#include "models/ltx2/transformer/config.h"

#include "nn/config_reader.h"

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kChannels = 128;  // the reference's default of in_channels and audio_in_channels

StreamConfig parse_video(const nn::ConfigReader& read) {
  StreamConfig video;
  video.in_channels = read.value_or<std::int64_t>("in_channels", kChannels);
  video.out_channels = read.value_or("out_channels", video.in_channels);
  video.heads = read.required<std::int64_t>("num_attention_heads");
  video.head_dim = read.required<std::int64_t>("attention_head_dim");
  video.text_dim = read.required<std::int64_t>("cross_attention_dim");
  video.max_seconds = read.value_or<std::int64_t>("pos_embed_max_pos", 20);
  video.gated_attention = read.value_or("gated_attn", false);
  video.text_modulation = read.value_or("cross_attn_mod", false);
  video.ff_bias = read.value_or("ff_bias", true);
  return video;
}

StreamConfig parse_audio(const nn::ConfigReader& read) {
  StreamConfig audio;
  audio.in_channels = read.value_or<std::int64_t>("audio_in_channels", kChannels);
  audio.out_channels = read.value_or("audio_out_channels", audio.in_channels);
  audio.heads = read.required<std::int64_t>("audio_num_attention_heads");
  audio.head_dim = read.required<std::int64_t>("audio_attention_head_dim");
  audio.text_dim = read.required<std::int64_t>("audio_cross_attention_dim");
  audio.max_seconds = read.value_or<std::int64_t>("audio_pos_embed_max_pos", 20);
  audio.gated_attention = read.value_or("audio_gated_attn", false);
  audio.text_modulation = read.value_or("audio_cross_attn_mod", false);
  audio.ff_bias = read.value_or("audio_ff_bias", true);
  return audio;
}

void refuse_what_is_not_implemented(const nn::ConfigReader& read) {
  for (auto key : {"patch_size", "patch_size_t", "audio_patch_size", "audio_patch_size_t"}) {
    read.only<std::int64_t>(key, 1);
  }
  read.only<std::string>("activation_fn", "gelu-approximate");
  read.only<std::string>("qk_norm", "rms_norm_across_heads");
  read.only("norm_elementwise_affine", false);
}

}  // namespace

double TransformerConfig::audio_latents_per_second() const {
  return static_cast<double>(audio_sampling_rate) / static_cast<double>(audio_hop_length) /
         static_cast<double>(audio_scale);
}

TransformerConfig TransformerConfig::parse(const nlohmann::json& json, const std::string& where) {
  nn::ConfigReader read(json, where);
  refuse_what_is_not_implemented(read);
  TransformerConfig config;
  config.video = parse_video(read);
  config.audio = parse_audio(read);
  constexpr std::int64_t kMostLayers = 1000;  // 48 as published; a damaged number must not become memory
  config.num_layers = read.required<std::int64_t>("num_layers");
  if (config.num_layers < 1 || config.num_layers > kMostLayers) throw read.unsupported("num_layers");
  config.cross_width = config.audio.text_dim;
  config.caption_channels = read.value_or<std::int64_t>("caption_channels", 3840);
  config.norm_eps = read.value_or("norm_eps", 1e-6);
  config.attention_bias = read.value_or("attention_bias", true);
  config.attention_out_bias = read.value_or("attention_out_bias", true);
  config.vae_scale = read.value_or("vae_scale_factors", config.vae_scale);
  config.audio_scale = read.value_or("audio_scale_factor", config.audio_scale);
  config.audio_sampling_rate = read.value_or("audio_sampling_rate", config.audio_sampling_rate);
  config.audio_hop_length = read.value_or("audio_hop_length", config.audio_hop_length);
  config.base_height = read.value_or("base_height", config.base_height);
  config.base_width = read.value_or("base_width", config.base_width);
  config.causal_offset = read.value_or("causal_offset", config.causal_offset);
  config.rope_theta = read.value_or("rope_theta", config.rope_theta);
  config.rope_double_precision = read.value_or("rope_double_precision", true);
  config.rope_type = read.value_or<std::string>("rope_type", "interleaved");
  config.timestep_scale = read.value_or("timestep_scale_multiplier", config.timestep_scale);
  config.cross_timestep_scale =
      read.value_or("cross_attn_timestep_scale_multiplier", config.cross_timestep_scale);
  config.caption_projection = read.value_or("use_prompt_embeddings", true);
  config.perturbed_attention = read.value_or("perturbed_attn", false);
  config.prompt_adaln = read.value_or("use_prompt_adaln_single", true);
  config.keyframe_embedding = read.value_or("use_keyframes_abs_pos_embedding", false);
  return config;
}

}  // namespace sluice::ltx2
