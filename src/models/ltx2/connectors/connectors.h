#pragma once
// The text side of the transformer's checkpoint: projections and both connectors, from a text encoder's
// states to the two contexts that the transformer attends to.  Follows diffusers' LTX2TextConnectors.
//
//   FeatureAccumulator features(connectors.projections, source, tokens, dtype);   // a prompt
//   hidden_states(gemma, text_source, input, [&](auto k, auto& state) { features.add(k, state); });
//   TextContext context = connect(connectors, source, {{features.finish()}}, 1024, dtype);

#include "models/ltx2/connectors/connector.h"
#include "models/ltx2/connectors/feature_extractor.h"

#include <span>
#include <vector>

namespace sluice::ltx2 {

struct Connectors {
  explicit Connectors(const ConnectorsConfig& config);

  const ConnectorsConfig& config() const { return projections.config; }
  std::vector<const weights::ParameterGroup*> groups() const;  // projections, then block by block

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

// A row a prompt, each padded on the left to `tokens` positions.  The result depends on `tokens`, since the
// registers behind a short prompt take part.  Error(bad_input) with the numbers for a prompt longer than that
// or for a count that the registers do not divide.
TextContext connect(const Connectors& connectors, weights::WeightSource& source,
                    std::span<const TextFeatures> prompts, std::int64_t tokens, at::ScalarType compute_dtype);

// From ready states and their mask, as extract_features() takes them.
TextContext text_context(const Connectors& connectors, weights::WeightSource& source,
                         const at::Tensor& states, const at::Tensor& mask, at::ScalarType compute_dtype);

}  // namespace sluice::ltx2
