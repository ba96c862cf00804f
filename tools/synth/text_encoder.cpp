#include "synth/text_encoder.h"

#include "models/ltx2/text/gemma.h"
#include "models/ltx2/text/tokenizer.h"
#include "nn/config_reader.h"

#include <utility>

namespace sluice::synth {
namespace {

using nlohmann::json;

constexpr std::int64_t kPublishedWidth = 3840;
constexpr std::int64_t kTinyHeadDim = 16;
constexpr std::int64_t kTinyVocabulary = 1024;

// As google/gemma-3-12b-it publishes it, rotation included; the vision tower is cut to nothing.
json gemma_config(const TextSizes& sizes) {
  return {{"architectures", {"Gemma3ForConditionalGeneration"}},
          {"model_type", "gemma3"},
          {"tie_word_embeddings", true},
          {"torch_dtype", "bfloat16"},
          {"text_config",
           {{"model_type", "gemma3_text"},
            {"hidden_size", sizes.hidden_size},
            {"intermediate_size", sizes.intermediate_size},
            {"num_hidden_layers", sizes.num_hidden_layers},
            {"num_attention_heads", sizes.num_attention_heads},
            {"num_key_value_heads", sizes.num_key_value_heads},
            {"head_dim", sizes.head_dim},
            {"query_pre_attn_scalar", sizes.head_dim},
            {"vocab_size", sizes.vocab_size},
            {"hidden_activation", "gelu_pytorch_tanh"},
            {"rms_norm_eps", 1e-6},
            {"sliding_window", 1024},
            {"sliding_window_pattern", 6},
            {"rope_theta", 1000000.0},
            {"rope_local_base_freq", 10000.0},
            {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}},
            {"max_position_embeddings", 131072}}},
          {"vision_config",
           {{"model_type", "siglip_vision_model"},
            {"hidden_size", 16},
            {"intermediate_size", 32},
            {"num_hidden_layers", 1},
            {"num_attention_heads", 2},
            {"image_size", 28},
            {"patch_size", 14}}}};
}

}  // namespace

TextSizes text_sizes(const Sizes& sizes) {
  TextSizes text;
  const nn::ConfigReader transformer(sizes.config.at("transformer"), "transformer");
  text.hidden_size = transformer.count("caption_channels");
  text.num_hidden_layers = sizes.text_states - 1;
  if (text.hidden_size == kPublishedWidth) return text;
  text.intermediate_size = 4 * text.hidden_size;
  text.num_attention_heads = 4;
  text.num_key_value_heads = 2;
  text.head_dim = kTinyHeadDim;
  text.vocab_size = kTinyVocabulary;
  return text;
}

void add_text_encoder(Plan& plan, const TextSizes& sizes, const TextOptions& options) {
  TextSizes chosen = sizes;
  if (options.tokenizer) {
    chosen.vocab_size =
        static_cast<std::int64_t>(ltx2::Tokenizer::load(*options.tokenizer).vocabulary_size());
    plan.copies.push_back({*options.tokenizer, options.folder / "tokenizer.json"});
  }
  const json config = gemma_config(chosen);
  plan.texts.push_back({options.folder / "config.json", config.dump(2)});

  const ltx2::GemmaEncoder encoder(ltx2::GemmaConfig::parse(config, "text encoder"));
  std::vector<PlannedTensor> tensors;
  for (const auto* group : encoder.groups()) {
    for (const weights::Parameter& parameter : group->parameters) {
      tensors.push_back({"language_model.model." + parameter.name,
                         "text_encoder",
                         {parameter.name, parameter.shape},
                         options.dtype});
    }
  }
  add_shards(plan,
             {.folder = options.folder,
              .stem = "model",
              .shard_size = options.shard_size,
              .metadata = {{"format", "pt"}}},
             std::move(tensors));
}

}  // namespace sluice::synth
