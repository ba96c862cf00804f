#include "pipeline/quantize_selection.h"

#include "base/text.h"
#include "models/ltx2/files/key_map.h"
#include "models/ltx2/text/gemma_keys.h"
#include "weights/quantize/encode.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace sluice::pipeline {
namespace {

using ltx2::ComponentKind;

// Modules of a transformer block: the first four of every attention, the others of every feed-forward.
constexpr std::array<std::string_view, 6> kBlockLinears = {".to_q",     ".to_k",         ".to_v",
                                                           ".to_out.0", "ff.net.0.proj", "ff.net.2"};
constexpr std::array<std::string_view, 7> kTextLinears = {".q_proj",    ".k_proj",  ".v_proj",   ".o_proj",
                                                          ".gate_proj", ".up_proj", ".down_proj"};
constexpr std::string_view kWeight = ".weight";

// What quantized matrices have beside their values, in every layout that is known.
constexpr std::array<std::string_view, 6> kCompanions = {
    ".weight_scale",     ".scale_weight",         ".weight.absmax",
    ".weight.quant_map", ".weight.nested_absmax", ".quant_state.bitsandbytes__nf4"};

template <std::size_t N>
bool ends_with_any(std::string_view name, const std::array<std::string_view, N>& endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

template <std::size_t N>
bool is_weight_of(std::string_view name, const std::array<std::string_view, N>& modules) {
  return name.ends_with(kWeight) && ends_with_any(name.substr(0, name.size() - kWeight.size()), modules);
}

// `name`: the model's.
std::optional<TensorPlace> place_of(ComponentKind kind, std::string_view name) {
  if (kind == ComponentKind::transformer) {
    const bool in_block = name.starts_with("transformer_blocks.");
    return TensorPlace{QuantizeComponent::transformer, in_block && is_weight_of(name, kBlockLinears)};
  }
  if (kind == ComponentKind::connectors) {
    const bool in_block = name.find(".transformer_blocks.") != std::string_view::npos;
    return TensorPlace{QuantizeComponent::connectors, in_block && is_weight_of(name, kBlockLinears)};
  }
  return std::nullopt;
}

// Names of diffusers folders, which have no prefix, or one that other programs put in front.
std::optional<TensorPlace> place_of_bare(std::string_view name) {
  for (std::string_view prefix : {"diffusion_model.", "transformer."}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  if (name.starts_with("transformer_blocks.")) return place_of(ComponentKind::transformer, name);
  if (name.starts_with("video_connector.") || name.starts_with("audio_connector."))
    return place_of(ComponentKind::connectors, name);
  return std::nullopt;
}

TensorPlaces places_in_model(const Checkpoint& checkpoint) {
  TensorPlaces places;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const auto name = ltx2::classify(tensor.name);
    const auto place =
        name ? place_of(name->kind, ltx2::diffusers_name(*name, {})) : place_of_bare(tensor.name);
    if (place) places.emplace(tensor.name, *place);
  }
  return places;
}

// Empty if it is none.
TensorPlaces places_in_text_encoder(const Checkpoint& checkpoint) {
  TensorPlaces places;
  bool has_layers = false;
  const weights::ComponentTable table = ltx2::gemma_table(checkpoint);
  for (const auto& [name, tensor] : table.tensors) {
    const bool linear = name.starts_with("layers.") && is_weight_of(name, kTextLinears);
    has_layers = has_layers || linear;
    places.emplace(tensor.name, TensorPlace{QuantizeComponent::text_encoder, linear});
  }
  return has_layers ? places : TensorPlaces();
}

bool is_wide(Dtype dtype) {
  return dtype_bits(dtype) >= 16;
}

void refuse_quantized(const Checkpoint& checkpoint, const TensorInfo& tensor, const TensorPlace& place) {
  const bool narrow_float = tensor.dtype != Dtype::BOOL && tensor.dtype != Dtype::U8 &&
                            tensor.dtype != Dtype::I8 && !is_wide(tensor.dtype);
  const bool narrow_matrix = place.linear && !is_wide(tensor.dtype);
  const bool companion = ends_with_any(tensor.name, kCompanions);
  if (!narrow_float && !narrow_matrix && !companion) return;
  throw Error(ErrorKind::bad_input,
              fmt::format("{}: already quantized: tensor {} is {}",
                          checkpoint.shards()[tensor.shard].path.string(), in_quotes(tensor.name),
                          companion ? "the scale or table of a quantized matrix" : dtype_name(tensor.dtype)),
              "give the checkpoint that it was made from, in bf16");
}

}  // namespace

TensorPlaces find_places(const Checkpoint& checkpoint) {
  TensorPlaces places = places_in_model(checkpoint);
  return places.empty() ? places_in_text_encoder(checkpoint) : places;
}

TensorNames select_matrices(const Checkpoint& checkpoint, const TensorPlaces& places,
                            const std::vector<QuantizeComponent>& components) {
  TensorNames names;
  for (const auto& [name, place] : places) {
    if (std::ranges::find(components, place.component) == components.end()) continue;
    const TensorInfo& tensor = *checkpoint.find(name);
    refuse_quantized(checkpoint, tensor, place);
    const bool matrix = tensor.shape.size() == 2 && tensor.size > 0 && weights::can_quantize(tensor.dtype);
    if (place.linear && matrix) names.insert(name);
  }
  return names;
}

}  // namespace sluice::pipeline
