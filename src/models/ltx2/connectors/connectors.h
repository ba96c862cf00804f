#pragma once
// The text side of the transformer's checkpoint: projections and both connectors, from a text encoder's
// states to the two contexts that the transformer attends to.  Follows diffusers' LTX2TextConnectors.  Every
// weight is leased once for all prompts.
//
//   FeatureAccumulator features(connectors.projections, projections_source, {tokens, …}, dtype);
//   hidden_states(gemma, text_source, inputs, [&](auto p, auto k, auto& state) { features.add(p, k, state);
//   }); std::vector<PaddedFeatures> prompts; for (TextFeatures& prompt : features.finish())
//   prompts.push_back(padded_left(std::move(prompt), 1024)); std::vector<TextContext> contexts =
//   connect(connectors, source, prompts, dtype);

#include "models/ltx2/connectors/connector.h"
#include "models/ltx2/connectors/feature_extractor.h"

#include <span>
#include <vector>

namespace sluice::ltx2 {

struct Connectors {
  explicit Connectors(const ConnectorsConfig& config, Bytes projection_tile = kProjectionTile);

  const ConnectorsConfig& config() const { return projections.config; }
  std::vector<const weights::ParameterGroup*> groups() const;  // projections, then pass()
  // What a text phase leases after the projections, in this order, each once: video connector, audio
  // connector.  The projections (projections.groups()) are gone through by themselves, once a pass of
  // plan_shares().
  std::vector<const weights::ParameterGroup*> pass() const;

  TextProjections projections;
  Connector video, audio;
};

struct TextContext {
  at::Tensor video_text;  // [batch, tokens, width of the video connector]
  at::Tensor audio_text;  // [batch, tokens, width of the audio connector]
  // [batch, tokens] i64, all ones: registers have taken padding's place.  Ones without registers too, as in
  // the reference, whose test `additive mask < 1e-6` holds at padding as well.
  at::Tensor mask;
};

struct PaddedFeatures {
  TextFeatures features;
  at::Tensor mask;  // i64 [tokens], 0 = padding
};

// Padded on the left to `tokens` positions.  The result depends on `tokens`, since the registers behind a
// short prompt take part.  Error(bad_input) with the numbers for a prompt longer than that.
PaddedFeatures padded_left(TextFeatures features, std::int64_t tokens);

// A context a prompt, each that which the prompt has alone, to the bit.  Error(bad_input) with the numbers
// for a length that the registers do not divide.
std::vector<TextContext> connect(const Connectors& connectors, weights::WeightSource& source,
                                 std::span<const PaddedFeatures> prompts, at::ScalarType compute_dtype);

// Bytes of the activations of connect(), the largest sum at once, for rows of these lengths; the contexts are
// among them.
std::int64_t connectors_memory(const ConnectorsConfig& config, std::span<const std::int64_t> lengths,
                               at::ScalarType compute_dtype);

// The contexts of a batch of ready states and their mask, as extract_features() takes them.
TextContext text_context(const Connectors& connectors, weights::WeightSource& source,
                         const at::Tensor& states, const at::Tensor& mask, at::ScalarType compute_dtype);

}  // namespace sluice::ltx2
