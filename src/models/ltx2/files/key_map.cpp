#include "models/ltx2/files/key_map.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace sluice::ltx2 {
namespace {

using Rename = std::pair<std::string_view, std::string_view>;

struct Prefix {
  std::string_view text;
  ComponentKind kind;
  std::string_view keep;  // what stands in front of the rest
};

// The first that fits counts; of several that lead to the same names, the last is the published one.
constexpr Prefix kPrefixes[] = {
    {"model.diffusion_model.video_embeddings_connector.", ComponentKind::connectors, "video_connector."},
    {"model.diffusion_model.audio_embeddings_connector.", ComponentKind::connectors, "audio_connector."},
    {"model.diffusion_model.text_embedding_projection.", ComponentKind::connectors,
     "text_embedding_projection."},
    {"text_embedding_projection.", ComponentKind::connectors, "text_embedding_projection."},
    {"model.diffusion_model.", ComponentKind::transformer, ""},
    {"vae.", ComponentKind::vae, ""},
    {"audio_vae.", ComponentKind::audio_vae, ""},
    {"vocoder.", ComponentKind::vocoder, ""},
};

// First segment of a transformer name.
constexpr Rename kTransformerHeads[] = {
    {"patchify_proj", "proj_in"},
    {"audio_patchify_proj", "audio_proj_in"},
    {"adaln_single", "time_embed"},
    {"audio_adaln_single", "audio_time_embed"},
    {"prompt_adaln_single", "prompt_adaln"},
    {"audio_prompt_adaln_single", "audio_prompt_adaln"},
    {"av_ca_video_scale_shift_adaln_single", "av_cross_attn_video_scale_shift"},
    {"av_ca_audio_scale_shift_adaln_single", "av_cross_attn_audio_scale_shift"},
    {"av_ca_a2v_gate_adaln_single", "av_cross_attn_video_a2v_gate"},
    {"av_ca_v2a_gate_adaln_single", "av_cross_attn_audio_v2a_gate"},
};

// Any later segment, in transformer and connectors.
constexpr Rename kAttentionSegments[] = {
    {"scale_shift_table_a2v_ca_video", "video_a2v_cross_attn_scale_shift_table"},
    {"scale_shift_table_a2v_ca_audio", "audio_a2v_cross_attn_scale_shift_table"},
    {"q_norm", "norm_q"},
    {"k_norm", "norm_k"},
};

constexpr Rename kConnectorSegments[] = {
    {"transformer_1d_blocks", "transformer_blocks"},
    {"q_norm", "norm_q"},
    {"k_norm", "norm_k"},
};

constexpr Rename kTextProjections[] = {
    {"video_aggregate_embed", "video_text_proj_in"},
    {"audio_aggregate_embed", "audio_text_proj_in"},
    {"aggregate_embed", "text_proj_in"},
};

constexpr Rename kStatistics[] = {
    {"per_channel_statistics.mean-of-means", "latents_mean"},
    {"per_channel_statistics.std-of-means", "latents_std"},
};

// The filter of a vocoder's downsampling lies one level deeper in the single file.
constexpr Rename kDownsampleFilter = {".downsample.lowpass.filter", ".downsample.filter"};

constexpr Rename kVocoderSegments[] = {
    {"conv_pre", "conv_in"},  {"conv_post", "conv_out"}, {"ups", "upsamplers"},
    {"resblocks", "resnets"}, {"act_post", "act_out"},
};

std::vector<std::string> split(std::string_view name) {
  std::vector<std::string> segments;
  while (true) {
    std::size_t dot = name.find('.');
    segments.emplace_back(name.substr(0, dot));
    if (dot == std::string_view::npos) return segments;
    name.remove_prefix(dot + 1);
  }
}

std::string join(std::span<const std::string> segments) {
  return fmt::format("{}", fmt::join(segments, "."));
}

std::string_view renamed(std::string_view text, std::span<const Rename> rules) {
  auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rename& r) { return r.first == text; });
  return rule == rules.end() ? text : rule->second;
}

std::string_view original(std::string_view text, std::span<const Rename> rules) {
  auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rename& r) { return r.second == text; });
  return rule == rules.end() ? text : rule->first;
}

void restore_segments(std::span<std::string> segments, std::span<const Rename> rules) {
  for (std::string& segment : segments) segment = original(segment, rules);
}

std::string with_ending(std::string text, std::string_view from, std::string_view to) {
  if (text.ends_with(from)) text.replace(text.size() - from.size(), from.size(), to);
  return text;
}

void rename_segments(std::span<std::string> segments, std::span<const Rename> rules) {
  for (std::string& segment : segments) segment = renamed(segment, rules);
}

std::string transformer_name(std::string_view name) {
  auto segments = split(name);
  segments.front() = renamed(segments.front(), kTransformerHeads);
  rename_segments(std::span(segments).subspan(1), kAttentionSegments);
  return join(segments);
}

std::string connectors_name(std::string_view name) {
  auto segments = split(name);
  if (segments.front() == "text_embedding_projection") {
    segments.erase(segments.begin());
    if (!segments.empty()) segments.front() = renamed(segments.front(), kTextProjections);
    return join(segments);
  }
  rename_segments(segments, kConnectorSegments);
  return join(segments);
}

std::string vae_name(std::string_view name, const BlockNames& blocks) {
  std::string_view statistic = renamed(name, kStatistics);
  if (statistic != name) return std::string(statistic);
  auto segments = split(name);
  if (segments.size() < 4) return std::string(name);
  auto block = blocks.find(join(std::span(segments).first(3)));  // "decoder.up_blocks.3"
  if (block == blocks.end()) return std::string(name);
  auto rest = std::span(segments).subspan(3);
  if (rest.front() == "res_blocks") rest = rest.subspan(1);
  return block->second + "." + join(rest);
}

std::string vocoder_name(std::string_view name) {
  auto segments = split(name);
  rename_segments(segments, kVocoderSegments);
  std::string joined = join(segments);
  return with_ending(std::move(joined), kDownsampleFilter.first, kDownsampleFilter.second);
}

std::string original_transformer_name(std::string_view name) {
  auto segments = split(name);
  segments.front() = original(segments.front(), kTransformerHeads);
  restore_segments(std::span(segments).subspan(1), kAttentionSegments);
  return join(segments);
}

std::string original_connectors_name(std::string_view name) {
  auto segments = split(name);
  if (std::string_view projection = original(segments.front(), kTextProjections);
      projection != segments.front()) {
    segments.front() = projection;
    return "text_embedding_projection." + join(segments);
  }
  restore_segments(segments, kConnectorSegments);
  return join(segments);
}

std::string original_vae_name(std::string_view name, const BlockNames& blocks) {
  for (const auto& [file, diffusers] : blocks) {
    if (!name.starts_with(diffusers + ".")) continue;
    const std::string_view rest = name.substr(diffusers.size());
    return file + (diffusers.ends_with(".resnets") ? ".res_blocks" : "") + std::string(rest);
  }
  return std::string(original(name, kStatistics));
}

std::string original_vocoder_name(std::string_view name) {
  auto segments = split(name);
  restore_segments(segments, kVocoderSegments);
  return with_ending(join(segments), kDownsampleFilter.second, kDownsampleFilter.first);
}

std::string original_name(ComponentKind kind, std::string_view name, const BlockNames& blocks) {
  switch (kind) {
    case ComponentKind::transformer:
      return original_transformer_name(name);
    case ComponentKind::connectors:
      return original_connectors_name(name);
    case ComponentKind::vae:
      return original_vae_name(name, blocks);
    case ComponentKind::audio_vae:
      return std::string(original(name, kStatistics));
    case ComponentKind::vocoder:
      return original_vocoder_name(name);
  }
  throw Error(ErrorKind::internal, "unknown component kind");
}

std::string block_kind(const nlohmann::json& entry) {
  return entry.is_array() && !entry.empty() && entry[0].is_string() ? entry[0].get<std::string>()
                                                                    : std::string();
}

// Names for one block list, in execution order.  A group of residual blocks without a sampler is the middle
// block: the decoder's first, the encoder's last.
void name_blocks(const std::vector<std::string>& kinds, bool decoder, const std::string& where,
                 BlockNames& names) {
  const std::string file = decoder ? "decoder.up_blocks." : "encoder.down_blocks.";
  const std::string_view sampler = decoder ? "upsamplers" : "downsamplers";
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const bool residual = i % 2 == 0;
    if ((kinds[i] == "res_x") != residual || kinds.size() % 2 == 0) {
      throw Error(ErrorKind::bad_input,
                  fmt::format("{}: {} does not alternate residual groups and samplers (entry {} is '{}')",
                              where, decoder ? "decoder_blocks" : "encoder_blocks", i, kinds[i]),
                  "use the published video VAE of LTX-2");
    }
    const bool middle = residual && i == (decoder ? 0 : kinds.size() - 1);
    const std::size_t stage = decoder && residual ? i / 2 - 1 : i / 2;
    names[file + std::to_string(i)] =
        middle ? fmt::format("{}.mid_block.resnets", decoder ? "decoder" : "encoder")
               : fmt::format("{}{}.{}", file, stage, residual ? "resnets" : fmt::format("{}.0", sampler));
  }
}

std::vector<std::string> block_kinds(const nlohmann::json& vae, const char* key) {
  std::vector<std::string> kinds;
  if (auto list = vae.find(key); list != vae.end() && list->is_array()) {
    for (const auto& entry : *list) kinds.push_back(block_kind(entry));
  }
  return kinds;
}

}  // namespace

std::optional<ComponentName> classify(std::string_view name) {
  for (const Prefix& prefix : kPrefixes) {
    if (name.starts_with(prefix.text)) {
      return ComponentName{prefix.kind,
                           std::string(prefix.keep) + std::string(name.substr(prefix.text.size()))};
    }
  }
  return std::nullopt;
}

BlockNames vae_block_names(const nlohmann::json& vae, const std::string& where) {
  BlockNames names;
  auto encoder = block_kinds(vae, "encoder_blocks"), decoder = block_kinds(vae, "decoder_blocks");
  std::reverse(decoder.begin(), decoder.end());  // listed from the pixel end, executed from the latent end
  if (!encoder.empty()) name_blocks(encoder, false, where, names);
  if (!decoder.empty()) name_blocks(decoder, true, where, names);
  return names;
}

std::string diffusers_name(const ComponentName& name, const BlockNames& blocks) {
  switch (name.kind) {
    case ComponentKind::transformer:
      return transformer_name(name.name);
    case ComponentKind::connectors:
      return connectors_name(name.name);
    case ComponentKind::vae:
      return vae_name(name.name, blocks);
    case ComponentKind::audio_vae:
      return std::string(renamed(name.name, kStatistics));
    case ComponentKind::vocoder:
      return vocoder_name(name.name);
  }
  throw Error(ErrorKind::internal, "unknown component kind");
}

std::string single_file_name(ComponentKind kind, std::string_view name, const BlockNames& blocks) {
  const std::string inner = original_name(kind, name, blocks);
  auto prefix = std::find_if(std::rbegin(kPrefixes), std::rend(kPrefixes),
                             [&](const Prefix& p) { return p.kind == kind && inner.starts_with(p.keep); });
  if (prefix == std::rend(kPrefixes)) {
    throw Error(ErrorKind::internal,
                fmt::format("the single file has no name for '{}' of the {}", name, to_string(kind)));
  }
  return std::string(prefix->text) + inner.substr(prefix->keep.size());
}

}  // namespace sluice::ltx2
