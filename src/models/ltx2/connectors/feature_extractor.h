#pragma once
// From a text encoder's states to one feature vector a token and stream: every state is normed, the states of
// a token are laid side by side (column = channel · states + state, the state fastest) and projected.

#include "models/ltx2/connectors/connectors_config.h"
#include "nn/layers.h"
#include "weights/weight_source.h"

#include <sluice/units.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sluice::ltx2 {

// 2.3 GB in bf16 at the published sizes: a group of its own.
struct TextProjections {
  explicit TextProjections(const ConnectorsConfig& config);
  TextProjections(const TextProjections&) = delete;  // the group holds addresses of the slots
  TextProjections& operator=(const TextProjections&) = delete;

  ConnectorsConfig config;
  nn::Linear video, audio;  // audio is empty where one projection serves both streams
  weights::ParameterGroup group;
};

// The features of one prompt's real tokens.
struct TextFeatures {
  at::Tensor video;  // [tokens, width of the video connector]
  at::Tensor audio;  // [tokens, width of the audio connector]
  // What the projections make of padding, [width]: their bias.
  at::Tensor video_padding, audio_padding;
};

struct FeatureLimits {
  // Normed states held at once.  Up to 356 tokens at the published sizes in f32 all states fit, and the
  // weights are passed over once; 1024 tokens take 735 MiB, or three passes with a third of them each.
  Bytes held_states = MiB(256);
  // Where not all states fit: columns of a projection gathered at once.
  Bytes gathered_columns = MiB(64);
};

// Takes a prompt's states in order as the text encoder makes them, so that no more than the limit is kept.
// Leases the projections only while it multiplies.
class FeatureAccumulator {
 public:
  // dtype: of the features and of the arithmetic, f32 or bf16.
  FeatureAccumulator(const TextProjections& projections, weights::WeightSource& source, std::int64_t tokens,
                     at::ScalarType dtype, FeatureLimits limits = {});

  void add(std::int64_t state, const at::Tensor& hidden);  // hidden: [tokens, caption_channels]
  TextFeatures finish();                                   // Error(internal) unless every state was added

 private:
  void begin_block();
  void project_block();
  void complete();  // the last share is in; the projections are leased

  const TextProjections& projections_;
  weights::WeightSource& source_;
  std::int64_t tokens_;
  at::ScalarType dtype_;
  FeatureLimits limits_;
  std::int64_t block_states_;     // states a block
  std::int64_t block_begin_ = 0;  // first state of the block
  std::int64_t next_state_ = 0;
  at::Tensor block_;          // [tokens, caption_channels, states of the block]
  at::Tensor video_, audio_;  // f32 sums so far
  TextFeatures features_;     // once the last block is projected
};

// Features of each row of a batch of ready states: [batch, tokens, channels, states] or, flattened as the
// reference pipelines pass prompt embeddings, [batch, tokens, channels · states].  mask: [batch, tokens], 0 =
// padding.  Error(bad_input) with the numbers for another width.
std::vector<TextFeatures> extract_features(const TextProjections& projections, weights::WeightSource& source,
                                           const at::Tensor& states, const at::Tensor& mask,
                                           at::ScalarType dtype);

// One state of a prompt's real tokens, normed: [tokens, channels].
at::Tensor norm_state(const ConnectorsConfig& config, const at::Tensor& hidden);

// The same for a batch, laid out as the projections' input [batch, tokens, channels · states] with zeros at
// padding: for comparison with the reference.
at::Tensor norm_states(const ConnectorsConfig& config, const at::Tensor& states, const at::Tensor& mask);

}  // namespace sluice::ltx2
