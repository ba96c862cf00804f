#pragma once
// A synthetic Gemma 3 folder beside a checkpoint: config.json, weights under the published names, and a
// tokenizer copied from elsewhere.

#include "synth/plan.h"
#include "synth/sizes.h"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace sluice::synth {

// The text model's sizes, under the names of its config.
struct TextSizes {
  std::int64_t hidden_size = 3840;
  std::int64_t num_hidden_layers = 48;
  std::int64_t intermediate_size = 15360;
  std::int64_t num_attention_heads = 16;
  std::int64_t num_key_value_heads = 8;
  std::int64_t head_dim = 256;
  std::int64_t vocab_size = 262208;
};

// What the checkpoint's connectors need: their width and number of states.  The rest is Gemma 3 12B's where
// the width is, else in proportion to it.
TextSizes text_sizes(const Sizes& sizes);

struct TextOptions {
  std::filesystem::path folder;
  std::optional<std::filesystem::path> tokenizer;  // a tokenizer.json; its vocabulary decides vocab_size
  Dtype dtype = Dtype::BF16;
  Bytes shard_size = GiB(5);
};

void add_text_encoder(Plan& plan, const TextSizes& sizes, const TextOptions& options);

}  // namespace sluice::synth
