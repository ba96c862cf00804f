#pragma once
// From a text encoder's states to one feature vector a token and stream: every state is normed, the states of
// a token are laid side by side (column = channel · states + state, the state fastest) and projected.

#include "models/ltx2/connectors/state_columns.h"
#include "models/ltx2/connectors/text_projections.h"
#include "weights/weight_source.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sluice::ltx2 {

// The features of one prompt's real tokens.
struct TextFeatures {
  at::Tensor video;  // [tokens, width of the video connector]
  at::Tensor audio;  // [tokens, width of the audio connector]
  // What the projections make of padding, [width]: their bias.
  at::Tensor video_padding, audio_padding;
};

// Takes the states of one or more prompts as the text encoder makes them, so that no more than the limit is
// kept.  Leases the projections tile by tile when it multiplies: where all states fit, that is in finish(),
// when the encoder is done.  All prompts share every tile; a prompt's features are those that it has alone,
// to the bit, whatever the limit.
class FeatureAccumulator {
 public:
  // tokens: of each prompt.  dtype: of the features and of the arithmetic, f32 or bf16; sums are f32.
  FeatureAccumulator(const TextProjections& projections, weights::WeightSource& source,
                     std::vector<std::int64_t> tokens, at::ScalarType dtype, FeatureLimits limits = {});

  // hidden: [tokens, caption_channels].  A prompt's states come in order, state k of all prompts before any
  // k + 1; else Error(internal).
  void add(std::size_t prompt, std::int64_t state, const at::Tensor& hidden);

  std::vector<TextFeatures> finish();  // Error(internal) unless every state was added

 private:
  struct Stream {
    const TextProjection* projection;
    double scale;
    at::Tensor sums;     // f32 [tokens of all prompts, out]
    at::Tensor padding;  // f32 [out]
  };

  std::int64_t held_end() const;  // first state behind those that are held
  void hold();                    // memory for the next states
  void project_held();
  void project_tile(Stream& stream, const ProjectionTile& tile);
  TextFeatures features_of(std::size_t prompt, const Stream& video, const Stream& audio) const;

  const TextProjections& projections_;
  weights::WeightSource& source_;
  std::vector<std::int64_t> tokens_, first_row_;  // of each prompt
  std::int64_t rows_ = 0;                         // of all prompts
  at::ScalarType dtype_;
  StateShares plan_;
  std::int64_t first_share_ = 0;          // held from here on
  std::vector<std::int64_t> next_state_;  // of each prompt
  std::vector<at::Tensor> held_;          // shares [rows, channels, states of the share]
  at::Tensor columns_;                    // of some of a projection's rows, share by share
  std::vector<Stream> streams_;           // video, and audio where it has its own projection
};

// Features of each row of a batch of ready states: [batch, tokens, channels, states] or, flattened as the
// reference pipelines pass prompt embeddings, [batch, tokens, channels · states].  mask: [batch, tokens], 0 =
// padding.  Error(bad_input) with the numbers for another width.
std::vector<TextFeatures> extract_features(const TextProjections& projections, weights::WeightSource& source,
                                           const at::Tensor& states, const at::Tensor& mask,
                                           at::ScalarType dtype);

// States that are there already, of one prompt: a view, from which the real tokens are picked state by state.
struct ReadyStates {
  at::Tensor states;  // [positions, channels, states]
  at::Tensor places;  // i64, the real tokens' positions

  std::int64_t tokens() const { return places.size(0); }
  at::Tensor state(std::int64_t index) const;  // [tokens, channels]
};

// Of each row, with states and mask as above.
std::vector<ReadyStates> ready_states(const ConnectorsConfig& config, const at::Tensor& states,
                                      const at::Tensor& mask);

// One state of a prompt's real tokens, normed: [tokens, channels].
at::Tensor norm_state(const ConnectorsConfig& config, const at::Tensor& hidden);

// The same for a batch, laid out as the projections' input [batch, tokens, channels · states] with zeros at
// padding: for comparison with the reference.
at::Tensor norm_states(const ConnectorsConfig& config, const at::Tensor& states, const at::Tensor& mask);

// Bytes of what an accumulator keeps, while states are added and, the same among it, while it projects.
struct FeatureMemory {
  std::int64_t held = 0;
  std::int64_t projecting = 0;
};
FeatureMemory feature_memory(const ConnectorsConfig& config, std::int64_t tokens, at::ScalarType dtype,
                             const FeatureLimits& limits);

// Bytes of scratch (kernels/scratch.h) in which rows of projections of another dtype are widened.
Bytes projection_scratch(const ConnectorsConfig& config, at::ScalarType dtype);

}  // namespace sluice::ltx2
