#include "synth/parameters.h"

#include "models/ltx2/audio_vae/decoder.h"
#include "models/ltx2/connectors/connectors.h"
#include "models/ltx2/files/config_translation.h"
#include "models/ltx2/files/key_map.h"
#include "models/ltx2/transformer/transformer.h"
#include "models/ltx2/video_vae/decoder.h"
#include "models/ltx2/vocoder/vocoder.h"
#include "nn/config_reader.h"
#include "synth/encoder_halves.h"

#include <map>
#include <utility>

namespace sluice::synth {
namespace {

using ltx2::ComponentKind;
using nlohmann::json;
using nn::ConfigReader;

using Groups = std::vector<const weights::ParameterGroup*>;

void append(std::vector<NamedShape>& to, const Groups& groups) {
  for (const auto* group : groups) {
    for (const weights::Parameter& parameter : group->parameters) {
      if (parameter.rows.begin == 0)  // else more of a tensor that is listed already
        to.push_back({parameter.name, parameter.shape});
    }
  }
}

void append(std::vector<NamedShape>& to, std::vector<NamedShape> tensors) {
  for (NamedShape& tensor : tensors) to.push_back(std::move(tensor));
}

// The tensors in whose shapes a published file says what its config does not: the text encoder's states and
// the channels that the vocoder takes.
std::map<std::string, TensorInfo, std::less<>> telling_shapes(const Sizes& sizes) {
  std::map<std::string, TensorInfo, std::less<>> tensors;
  auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    tensors[name].name = name;
    tensors[name].shape = std::move(shape);
  };
  const ConfigReader transformer(sizes.config.at("transformer"), "transformer");
  const std::int64_t columns = transformer.count("caption_channels") * sizes.text_states;
  const std::int64_t video =
      transformer.count("connector_num_attention_heads") * transformer.count("connector_attention_head_dim");
  const std::int64_t audio = transformer.count("audio_connector_num_attention_heads") *
                             transformer.count("audio_connector_attention_head_dim");
  add("video_text_proj_in.weight", {video, columns});
  add("video_text_proj_in.bias", {video});
  add("audio_text_proj_in.weight", {audio, columns});
  add("audio_text_proj_in.bias", {audio});

  const ConfigReader mel(sizes.config.at("audio_vae").at("model").at("params").at("ddconfig"), "ddconfig");
  add("vocoder.conv_in.weight", {0, mel.count("out_ch") * mel.count("mel_bins"), 0});
  return tensors;
}

json component_config(ComponentKind kind, const Sizes& sizes) {
  const auto shapes = telling_shapes(sizes);
  const auto lookup = [&](std::string_view name) {
    auto found = shapes.find(name);
    return found == shapes.end() ? nullptr : &found->second;
  };
  json config = ltx2::diffusers_config(kind, sizes.config, lookup, "the sizes");
  config["_class_name"] = ltx2::diffusers_class(kind);
  return config;
}

void list_tensors(Component& component, const Sizes& sizes) {
  const json& config = component.config;
  switch (component.kind) {
    case ComponentKind::transformer: {
      const ltx2::Transformer model(ltx2::TransformerConfig::parse(config, "transformer"));
      return append(component.tensors, model.groups());
    }
    case ComponentKind::connectors: {
      const ltx2::Connectors model(ltx2::ConnectorsConfig::parse(config, "connectors"));
      return append(component.tensors, model.groups());
    }
    case ComponentKind::vae: {
      const std::int64_t width = ConfigReader(sizes.config.at("vae"), "vae").count("encoder_base_channels");
      append(component.tensors, video_encoder(config, width));
      const ltx2::VideoDecoder model(ltx2::VideoVaeConfig::parse(config));
      return append(component.tensors, model.groups());
    }
    case ComponentKind::audio_vae: {
      append(component.tensors, audio_encoder(config));
      const ltx2::AudioDecoder model(ltx2::AudioVaeConfig::parse(config));
      return append(component.tensors, model.groups());
    }
    case ComponentKind::vocoder: {
      const ltx2::VocoderConfig vocoder = ltx2::VocoderConfig::parse(config);
      append(component.tensors, ltx2::Vocoder(vocoder).groups());
      const ltx2::InnerMelConfig& mel = vocoder.inner_mel;
      component.tensors.push_back(
          {"mel_stft.stft_fn.inverse_basis", {2 * mel.frequencies(), 1, mel.filter_length}});
      return;
    }
  }
}

}  // namespace

Component make_component(ComponentKind kind, const Sizes& sizes) {
  Component component{kind, component_config(kind, sizes), {}};
  list_tensors(component, sizes);
  return component;
}

std::vector<NamedShape> single_file_tensors(const Component& component, const Sizes& sizes) {
  const ltx2::BlockNames blocks = ltx2::vae_block_names(sizes.config.at("vae"), "the sizes");
  std::vector<NamedShape> tensors = component.tensors;
  for (NamedShape& tensor : tensors)
    tensor.name = ltx2::single_file_name(component.kind, tensor.name, blocks);
  return tensors;
}

}  // namespace sluice::synth
