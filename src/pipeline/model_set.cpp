#include "pipeline/model_set.h"

#include "base/output_name.h"
#include "models/ltx2/text/gemma_keys.h"
#include "nn/json_file.h"
#include "weights/quantized.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <set>

namespace sluice::pipeline {
namespace {

namespace fs = std::filesystem;
using ltx2::ComponentKind;

weights::Accounting account_for(const ltx2::ModelFiles& files, ComponentKind kind,
                                const std::vector<const weights::ParameterGroup*>& groups,
                                std::vector<weights::IgnoreRule> ignore = {}) {
  auto unused = ltx2::unused_tensors(kind);
  ignore.insert(ignore.end(), unused.begin(), unused.end());
  return weights::account(files.component(kind).table, groups, ignore);
}

// What the model leaves out where only one stream is worked with.
std::vector<weights::IgnoreRule> left_out(const ltx2::Transformer& model) {
  if (model.modalities() == ltx2::Modalities::both) return {};
  std::set<std::string> used;
  for (const weights::ParameterGroup* group : model.groups())
    for (const weights::Parameter& parameter : group->parameters) used.insert(parameter.name);
  std::vector<weights::IgnoreRule> rules;
  const ltx2::Transformer whole(model.config());
  for (const weights::ParameterGroup* group : whole.groups())
    for (const weights::Parameter& parameter : group->parameters)
      if (!used.contains(parameter.name)) rules.push_back({parameter.name, "the other stream is left out"});
  return rules;
}

// An encoder is bound instead of being ignored.
void add(const std::vector<const weights::ParameterGroup*>& encoder, std::string_view prefix,
         std::vector<const weights::ParameterGroup*>& groups, std::vector<weights::IgnoreRule>& ignored) {
  groups.insert(groups.end(), encoder.begin(), encoder.end());
  std::erase_if(ignored, [&](const weights::IgnoreRule& rule) { return rule.prefix == prefix; });
}

struct Width {
  std::string what;
  std::int64_t value;
};

// Components that meet must have the same width there.
void require_equal(const ltx2::ModelFiles& files, const Width& one, const Width& other) {
  if (one.value == other.value) return;
  throw Error(ErrorKind::mismatch,
              fmt::format("{}: {} is {}, but {} is {}", files.path().string(), one.what, one.value,
                          other.what, other.value),
              "the components are of different models: take all of them from one release");
}

void check_widths(const ModelSet& models) {
  const auto& transformer = models.transformer->config();
  const auto& connectors = models.connectors->config();
  const auto& vae = models.video_decoder->config();
  const auto& audio = models.audio_decoder->config();
  const auto& files = models.files;
  require_equal(files, {"the transformer's video channels", transformer.video.in_channels},
                {"the video VAE's latent channels", vae.latent_channels});
  require_equal(files, {"the transformer's audio channels", transformer.audio.in_channels},
                {"the audio VAE's packed channels", audio.packed_channels()});
  if (!transformer.caption_projection) {
    require_equal(files, {"the transformer's text width", transformer.video.text_dim},
                  {"the video connector's width", connectors.video.width()});
    require_equal(files, {"the transformer's audio text width", transformer.audio.text_dim},
                  {"the audio connector's width", connectors.audio.width()});
  }
  require_equal(files, {"pixels a latent in the transformer", transformer.vae_scale[1]},
                {"pixels a latent in the video VAE", vae.spatial_ratio()});
  require_equal(files, {"frames a latent in the transformer", transformer.vae_scale[0]},
                {"frames a latent in the video VAE", vae.temporal_ratio()});
  if (models.vocoder) {
    require_equal(files, {"mel channels the audio VAE gives", audio.output_channels * audio.mel_bins},
                  {"mel channels the vocoder takes", models.vocoder->config().vocoder.in_channels});
  }
}

}  // namespace

sampling::VideoCompression ModelSet::compression() const {
  return {.frames = video_decoder->config().temporal_ratio(),
          .pixels = video_decoder->config().spatial_ratio()};
}

sampling::AudioRate ModelSet::audio_rate() const {
  const auto& config = transformer->config();
  return {.sample_rate = config.audio_sampling_rate,
          .hop_length = config.audio_hop_length,
          .downsample = config.audio_scale};
}

ModelSet open_models(const fs::path& path, const ModelNeeds& needs) {
  ModelSet models{.files = ltx2::ModelFiles::open(path)};
  auto component = [&](ComponentKind kind) -> const ltx2::ComponentFiles& {
    return models.files.component(kind);
  };
  auto config_of = [&](ComponentKind kind, auto parse) {
    return parse(component(kind).config, component(kind).where);
  };

  models.transformer = std::make_unique<ltx2::Transformer>(
      config_of(ComponentKind::transformer, ltx2::TransformerConfig::parse), needs.modalities);
  models.connectors =
      std::make_unique<ltx2::Connectors>(config_of(ComponentKind::connectors, ltx2::ConnectorsConfig::parse));
  models.video_decoder =
      std::make_unique<ltx2::VideoDecoder>(config_of(ComponentKind::vae, ltx2::VideoVaeConfig::parse));
  models.audio_decoder =
      std::make_unique<ltx2::AudioDecoder>(config_of(ComponentKind::audio_vae, ltx2::AudioVaeConfig::parse));

  auto& accounting = models.accounting;
  const auto& files = models.files;
  accounting[ComponentKind::transformer] = account_for(
      files, ComponentKind::transformer, models.transformer->groups(), left_out(*models.transformer));
  accounting[ComponentKind::connectors] =
      account_for(files, ComponentKind::connectors, models.connectors->groups());
  auto video = models.video_decoder->groups(), audio = models.audio_decoder->groups();
  auto video_ignored = ltx2::VideoDecoder::ignore_rules(), audio_ignored = ltx2::AudioDecoder::ignore_rules();
  if (needs.given_frames) {
    models.video_encoder =
        std::make_unique<ltx2::VideoEncoder>(config_of(ComponentKind::vae, ltx2::VideoEncoderConfig::parse));
    add(models.video_encoder->groups(), "encoder.", video, video_ignored);
  }
  if (needs.given_sound) {
    models.audio_encoder = std::make_unique<ltx2::AudioEncoder>(
        config_of(ComponentKind::audio_vae, ltx2::AudioVaeConfig::parse));
    add(models.audio_encoder->groups(), "encoder.", audio, audio_ignored);
  }
  accounting[ComponentKind::vae] = account_for(files, ComponentKind::vae, video, video_ignored);
  accounting[ComponentKind::audio_vae] = account_for(files, ComponentKind::audio_vae, audio, audio_ignored);
  if (needs.sound) {
    models.vocoder =
        std::make_unique<ltx2::Vocoder>(config_of(ComponentKind::vocoder, ltx2::VocoderConfig::parse));
    accounting[ComponentKind::vocoder] =
        account_for(files, ComponentKind::vocoder, models.vocoder->groups(), ltx2::Vocoder::ignore_rules());
  }
  check_widths(models);
  return models;
}

fs::path text_encoder_folder(const fs::path& asked, const fs::path& model) {
  if (!asked.empty()) return asked;
  if (fs::path own = model / "text_encoder"; fs::is_directory(own)) return own;
  throw Error(ErrorKind::usage, "no text encoder given",
              "add --text-encoder FOLDER with the Gemma 3 model this checkpoint was trained with");
}

TextEncoder open_text_encoder(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw Error(
        ErrorKind::bad_input, fmt::format("{}: there is no such folder", folder.string()),
        "--text-encoder takes the folder of a Gemma 3 model with config.json, weights and tokenizer.json");
  }
  TextEncoder encoder;
  encoder.folder = folder;
  encoder.tokenizer = folder / "tokenizer.json";
  if (!fs::exists(encoder.tokenizer)) {
    // A diffusers folder keeps it beside the text encoder.
    const fs::path parent = without_slash(fs::absolute(folder).lexically_normal()).parent_path();
    if (fs::exists(parent / "tokenizer" / "tokenizer.json"))
      encoder.tokenizer = parent / "tokenizer" / "tokenizer.json";
  }
  if (!fs::exists(encoder.tokenizer)) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: there is no tokenizer.json", folder.string()),
                "copy the tokenizer.json of the Gemma 3 model into the folder");
  }
  const fs::path config = folder / "config.json";
  encoder.model = std::make_unique<ltx2::GemmaEncoder>(
      ltx2::GemmaConfig::parse(nn::read_json_file(config), config.string()));
  encoder.table = ltx2::gemma_table(Checkpoint::open(folder));
  encoder.warnings = weights::gather_quantized(encoder.table);
  encoder.accounting = weights::account(encoder.table, encoder.model->groups(), ltx2::gemma_ignored());
  return encoder;
}

}  // namespace sluice::pipeline
