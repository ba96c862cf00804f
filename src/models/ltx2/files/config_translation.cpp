#include "models/ltx2/files/config_translation.h"

#include "nn/config_reader.h"

#include <algorithm>

namespace sluice::ltx2 {
namespace {

using nlohmann::json;
using nn::ConfigReader;

const json& object(const json& parent, const char* key, const std::string& where) {
  return ConfigReader(parent, where).required<json>(key).is_object()
             ? parent.at(key)
             : throw Error(ErrorKind::bad_input, fmt::format("{}: '{}' is no JSON object", where, key),
                           "use the published config");
}

// Copies keys that have the same name and meaning on both sides.
void copy_keys(const json& from, json& to, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (auto found = from.find(key); found != from.end() && !found->is_null()) to[key] = *found;
  }
}

void check_transformer_constants(const ConfigReader& read) {
  read.only("dropout", 0.0);
  for (auto key : {"double_self_attention", "only_cross_attention", "use_linear_projection",
                   "upcast_attention", "share_ff", "caption_projection_first_linear",
                   "caption_projection_second_linear", "caption_proj_input_norm"}) {
    read.only(key, false);
  }
  for (auto key : {"cross_attention_norm", "causal_temporal_positioning", "use_middle_indices_grid",
                   "use_audio_video_cross_attention", "av_cross_ada_norm", "use_embeddings_connector",
                   "connector_norm_output"}) {
    read.only(key, true);
  }
  read.only<std::int64_t>("num_embeds_ada_norm", 1000);
  read.only<std::int64_t>("num_vector_embeds", 0);
  read.only<std::string>("standardization_norm", "rms_norm");
  read.only<std::string>("qk_norm", "rms_norm");
  read.only<std::string>("positional_embedding_type", "rope");
}

json translate_transformer(const json& metadata, const std::string& where) {
  ConfigReader read(metadata, where);
  read.only<std::string>("_class_name", "AVTransformer3DModel");
  check_transformer_constants(read);
  json out;
  copy_keys(metadata, out,
            {"num_layers",
             "num_attention_heads",
             "attention_head_dim",
             "cross_attention_dim",
             "in_channels",
             "out_channels",
             "audio_num_attention_heads",
             "audio_attention_head_dim",
             "audio_cross_attention_dim",
             "audio_in_channels",
             "audio_out_channels",
             "norm_eps",
             "norm_elementwise_affine",
             "timestep_scale_multiplier",
             "attention_bias",
             "activation_fn",
             "caption_channels",
             "ff_bias",
             "audio_ff_bias",
             "use_prompt_adaln_single",
             "use_keyframes_abs_pos_embedding"});
  out["rope_type"] = read.value_or<std::string>("rope_type", "split");
  out["rope_theta"] = read.value_or("positional_embedding_theta", 10000.0);
  auto max_pos = read.required<std::vector<std::int64_t>>("positional_embedding_max_pos");
  auto audio_max_pos = read.required<std::vector<std::int64_t>>("audio_positional_embedding_max_pos");
  if (max_pos.size() != 3) throw read.unsupported("positional_embedding_max_pos");
  if (audio_max_pos.size() != 1) throw read.unsupported("audio_positional_embedding_max_pos");
  out["pos_embed_max_pos"] = max_pos[0];
  out["base_height"] = max_pos[1];
  out["base_width"] = max_pos[2];
  out["audio_pos_embed_max_pos"] = audio_max_pos[0];
  out["rope_double_precision"] = read.value_or<std::string>("frequencies_precision", "float32") == "float64";
  // The official code's default is 1, a thousandth of the published value: never assume either.
  out["cross_attn_timestep_scale_multiplier"] = read.required<double>("av_ca_timestep_scale_multiplier");
  bool gated = read.value_or("apply_gated_attention", false);
  out["gated_attn"] = out["audio_gated_attn"] = gated;
  bool text_modulation = read.value_or("cross_attention_adaln", false);
  out["cross_attn_mod"] = out["audio_cross_attn_mod"] = text_modulation;
  out["use_prompt_embeddings"] = !read.value_or("caption_proj_before_connector", false);
  out["qk_norm"] = "rms_norm_across_heads";
  out["perturbed_attn"] = true;  // an evaluation mode, not a property of the weights
  return out;
}

const TensorInfo& matrix(const TensorLookup& tensors, const char* name, const std::string& where) {
  const TensorInfo* tensor = tensors(name);
  if (!tensor || tensor->shape.size() != 2) {
    throw Error(
        ErrorKind::mismatch,
        fmt::format("{}: no matrix '{}', from which the text projection's width is read", where, name),
        "the file lacks the connectors: use a complete checkpoint");
  }
  return *tensor;
}

json translate_connectors(const json& metadata, const TensorLookup& tensors, const std::string& where) {
  ConfigReader read(metadata, where);
  read.only<std::string>("text_encoder_norm_type", "per_token_rms");
  json out;
  auto layers = read.required<std::int64_t>("connector_num_layers");
  auto registers = read.required<std::int64_t>("connector_num_learnable_registers");
  bool gated = read.value_or("connector_apply_gated_attention", false);
  out["video_connector_num_layers"] = layers;
  out["audio_connector_num_layers"] = read.value_or("audio_connector_num_layers", layers);
  out["video_connector_num_learnable_registers"] = out["audio_connector_num_learnable_registers"] = registers;
  out["video_connector_num_attention_heads"] = read.required<std::int64_t>("connector_num_attention_heads");
  out["video_connector_attention_head_dim"] = read.required<std::int64_t>("connector_attention_head_dim");
  out["audio_connector_num_attention_heads"] =
      read.required<std::int64_t>("audio_connector_num_attention_heads");
  out["audio_connector_attention_head_dim"] =
      read.required<std::int64_t>("audio_connector_attention_head_dim");
  out["video_gated_attn"] = out["audio_gated_attn"] = gated;
  out["rope_theta"] = read.value_or("positional_embedding_theta", 10000.0);
  out["rope_double_precision"] = read.value_or<std::string>("frequencies_precision", "float32") == "float64";
  out["rope_type"] = read.value_or<std::string>("rope_type", "split");
  out["causal_temporal_positioning"] = false;
  auto base = read.required<std::vector<std::int64_t>>("connector_positional_embedding_max_pos");
  if (base.size() != 1) throw read.unsupported("connector_positional_embedding_max_pos");
  out["connector_rope_base_seq_len"] = base[0];

  const TensorInfo& video = matrix(tensors, "video_text_proj_in.weight", where);
  const TensorInfo& audio = matrix(tensors, "audio_text_proj_in.weight", where);
  auto caption = read.required<std::int64_t>("caption_channels");
  if (caption <= 0 || video.shape[1] % caption != 0) {
    throw Error(ErrorKind::mismatch,
                fmt::format("{}: '{}' has {} columns, no multiple of the config's caption_channels {}", where,
                            video.name, video.shape[1], caption),
                "check that config and weights come from the same release of the model");
  }
  out["caption_channels"] = caption;
  out["text_proj_in_factor"] = video.shape[1] / caption;
  out["video_hidden_dim"] = video.shape[0];
  out["audio_hidden_dim"] = audio.shape[0];
  out["per_modality_projections"] = true;
  out["proj_bias"] = tensors("video_text_proj_in.bias") != nullptr;
  return out;
}

struct BlockList {
  std::vector<std::int64_t> layers;       // of the residual groups
  std::vector<std::int64_t> multipliers;  // of the samplers
  std::vector<std::string> types;         // "spatial", "temporal", "spatiotemporal"
};

enum class Unknown { refused, kept };  // types of samplers, under the name they have here

BlockList read_blocks(const ConfigReader& read, const char* key, std::string_view suffix, Unknown unknown) {
  BlockList list;
  for (const json& entry : read.required<std::vector<json>>(key)) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string()) throw read.unsupported(key);
    const auto name = entry[0].get<std::string>();
    auto parameter = [&](const char* which) -> std::int64_t {
      if (entry[1].is_number_integer()) return entry[1].get<std::int64_t>();
      return ConfigReader(entry[1], fmt::format("{}: {} '{}'", read.where(), key, name))
          .required<std::int64_t>(which);
    };
    if (name == "res_x") {
      list.layers.push_back(parameter("num_layers"));
      continue;
    }
    list.multipliers.push_back(parameter("multiplier"));
    if (name == fmt::format("compress_space{}", suffix))
      list.types.emplace_back("spatial");
    else if (name == fmt::format("compress_time{}", suffix))
      list.types.emplace_back("temporal");
    else if (name == fmt::format("compress_all{}", suffix))
      list.types.emplace_back("spatiotemporal");
    else if (unknown == Unknown::refused)
      throw read.unsupported(key);
    else
      list.types.push_back(name);
  }
  return list;
}

// A file to decode with may lack the encoder, or have one of another kind: who encodes refuses it.
void translate_video_encoder(const ConfigReader& read, json& out) {
  if (!read.has("encoder_blocks")) return;
  const BlockList encoder = read_blocks(read, "encoder_blocks", "_res", Unknown::kept);
  const auto base = read.required<std::int64_t>("encoder_base_channels");
  // diffusers has no key for the first width, which there is the latents'.
  if (base != out.at("latent_channels")) out["encoder_base_channels"] = base;
  std::vector<std::int64_t> channels;  // behind each sampler
  std::int64_t width = base;
  for (std::int64_t multiplier : encoder.multipliers) channels.push_back(width *= multiplier);
  out["block_out_channels"] = channels;
  out["layers_per_block"] = encoder.layers;
  out["downsample_type"] = encoder.types;
  out["down_block_types"] = std::vector<std::string>(encoder.types.size(), "LTX2VideoDownBlock3D");
  out["spatio_temporal_scaling"] = std::vector<bool>(encoder.types.size(), true);
  out["encoder_causal"] = true;  // fixed
}

json translate_vae(const json& metadata, const std::string& where) {
  ConfigReader read(metadata, where);
  read.only<std::string>("_class_name", "CausalVideoAutoencoder");
  read.only<std::int64_t>("dims", 3);
  read.only<std::string>("norm_layer", "pixel_norm");
  read.only<std::string>("latent_log_var", "uniform");
  read.only("use_quant_conv", false);
  read.only("normalize_latent_channels", false);
  json out;
  copy_keys(metadata, out, {"in_channels", "out_channels", "scaling_factor"});
  out["latent_channels"] = read.required<std::int64_t>("latent_channels");
  out["patch_size"] = read.required<std::int64_t>("patch_size");
  out["patch_size_t"] = 1;
  out["decoder_causal"] = read.value_or("causal_decoder", false);
  out["timestep_conditioning"] = read.required<bool>("timestep_conditioning");  // official default: true
  out["decoder_spatial_padding_mode"] =
      read.required<std::string>("spatial_padding_mode");  // official default: reflect
  out["encoder_spatial_padding_mode"] = read.value_or<std::string>("encoder_spatial_padding_mode", "zeros");

  translate_video_encoder(read, out);

  BlockList decoder = read_blocks(read, "decoder_blocks", "", Unknown::refused);
  std::int64_t width = read.required<std::int64_t>("decoder_base_channels");
  std::vector<std::int64_t> channels;  // before each sampler, from the pixel end
  for (std::int64_t multiplier : decoder.multipliers) channels.push_back(width *= multiplier);
  std::reverse(decoder.types.begin(), decoder.types.end());  // the only list in execution order
  out["decoder_block_out_channels"] = channels;
  out["decoder_layers_per_block"] = decoder.layers;
  out["upsample_factor"] = decoder.multipliers;
  out["upsample_type"] = decoder.types;
  out["upsample_residual"] = std::vector<bool>(decoder.types.size(), false);
  out["decoder_inject_noise"] = std::vector<bool>(decoder.layers.size(), false);
  out["decoder_spatio_temporal_scaling"] = std::vector<bool>(decoder.types.size(), true);
  return out;
}

// What the mel front end has fixed because the diffusers' layout does not say it.
void check_mel_constants(const json& preprocessing, const json& sizes, const std::string& where) {
  constexpr std::int64_t kWindow = 1024;
  const ConfigReader stft(object(preprocessing, "stft", where), where);
  stft.only("filter_length", kWindow);
  stft.only("win_length", kWindow);
  if (!preprocessing.contains("mel")) return;
  const ConfigReader mel(object(preprocessing, "mel", where), where);
  mel.only("mel_fmin", 0.0);
  mel.only("mel_fmax", sizes.at("sample_rate").get<double>() / 2);
  if (sizes.contains("mel_bins")) mel.only("n_mel_channels", sizes.at("mel_bins").get<std::int64_t>());
}

json translate_audio_vae(const json& metadata, const std::string& where) {
  const json& params = object(object(metadata, "model", where), "params", where);
  const json& dd = object(params, "ddconfig", where);
  ConfigReader read(dd, where);
  json out;
  copy_keys(dd, out,
            {"ch_mult", "num_res_blocks", "in_channels", "resolution", "norm_type", "causality_axis",
             "dropout", "mid_block_add_attention", "double_z", "mel_bins"});
  out["base_channels"] = read.required<std::int64_t>("ch");
  out["latent_channels"] = read.required<std::int64_t>("z_channels");
  out["output_channels"] = read.required<std::int64_t>("out_ch");
  auto attention = read.value_or<std::vector<std::int64_t>>("attn_resolutions", {});
  out["attn_resolutions"] = attention.empty() ? json(nullptr) : json(attention);
  out["sample_rate"] = ConfigReader(params, where).required<std::int64_t>("sampling_rate");
  const json& preprocessing = object(metadata, "preprocessing", where);
  check_mel_constants(preprocessing, out, where);
  out["mel_hop_length"] =
      ConfigReader(object(preprocessing, "stft", where), where).required<std::int64_t>("hop_length");
  out["is_causal"] = true;
  return out;
}

// One of the two generators, its keys prefixed as diffusers prefixes those of the second.
void translate_generator(const json& generator, const std::string& prefix, const std::string& where,
                         json& out) {
  ConfigReader read(generator, where);
  read.only<std::string>("resblock", "AMP1");
  read.only("stereo", true);
  auto key = [&](const char* name) { return prefix + name; };
  out[key("hidden_channels")] = read.required<std::int64_t>("upsample_initial_channel");
  out[key("upsample_factors")] = read.required<json>("upsample_rates");
  out[key("upsample_kernel_sizes")] = read.required<json>("upsample_kernel_sizes");
  out[key("resnet_kernel_sizes")] = read.required<json>("resblock_kernel_sizes");
  out[key("resnet_dilations")] = read.required<json>("resblock_dilation_sizes");
  out[key("act_fn")] = read.required<std::string>("activation");
  out[key("final_bias")] = read.value_or("use_bias_at_final", true);
  out[key("out_channels")] = 2;
  out[key("antialias")] = true;
  out[key("antialias_ratio")] = 2;
  out[key("antialias_kernel_size")] = 12;
  if (!read.value_or("apply_final_activation", true)) {
    out[key("final_act_fn")] = nullptr;
  } else {
    out[key("final_act_fn")] = read.value_or("use_tanh_at_final", true) ? "tanh" : "clamp";
  }
}

// How many channels a generator takes stands only in the shape of its first convolution [out, in, taps].
std::int64_t first_channels(const TensorLookup& tensors, const char* name, const std::string& where) {
  const TensorInfo* tensor = tensors(name);
  if (!tensor || tensor->shape.size() != 3) {
    throw Error(ErrorKind::mismatch,
                fmt::format("{}: no convolution '{}', from which its input's width is read", where, name),
                "the file lacks the vocoder: use a complete checkpoint");
  }
  return tensor->shape[1];
}

json translate_vocoder(const json& metadata, const TensorLookup& tensors, const std::string& where) {
  if (!metadata.contains("bwe")) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: the vocoder has no bandwidth extension, as in LTX-2.0", where),
                "use an LTX-2.3 checkpoint");
  }
  const json& bwe = object(metadata, "bwe", where);
  json out;
  translate_generator(object(metadata, "vocoder", where), "", where + ": vocoder", out);
  translate_generator(bwe, "bwe_", where + ": bwe", out);
  ConfigReader read(bwe, where + ": bwe");
  out["in_channels"] = first_channels(tensors, "vocoder.conv_in.weight", where);
  out["num_mel_channels"] = read.required<std::int64_t>("num_mels");
  out["bwe_in_channels"] = 2 * read.required<std::int64_t>("num_mels");
  out["filter_length"] = out["window_length"] = read.required<std::int64_t>("n_fft");
  out["hop_length"] = read.required<std::int64_t>("hop_length");
  out["input_sampling_rate"] = read.required<std::int64_t>("input_sampling_rate");
  out["output_sampling_rate"] = read.required<std::int64_t>("output_sampling_rate");
  return out;
}

}  // namespace

json diffusers_config(ComponentKind kind, const json& metadata, const TensorLookup& tensors,
                      const std::string& where) {
  const std::string at = fmt::format("{}: config of the {}", where, to_string(kind));
  switch (kind) {
    case ComponentKind::transformer:
      return translate_transformer(object(metadata, "transformer", at), at);
    case ComponentKind::connectors:
      return translate_connectors(object(metadata, "transformer", at), tensors, at);
    case ComponentKind::vae:
      return translate_vae(object(metadata, "vae", at), at);
    case ComponentKind::audio_vae:
      return translate_audio_vae(object(metadata, "audio_vae", at), at);
    case ComponentKind::vocoder:
      return translate_vocoder(object(metadata, "vocoder", at), tensors, at);
  }
  throw Error(ErrorKind::internal, "unknown component kind");
}

}  // namespace sluice::ltx2
