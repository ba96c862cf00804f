#pragma once
// From prompts to the contexts the transformer attends to: tokenizer, text encoder, projections, connectors.
// All prompts of a request go through together, so that every weight is read once for all of them.  Only the
// contexts (1024 x 6144 values each at the published sizes) outlive the phase.

#include "models/ltx2/text/tokenizer.h"
#include "pipeline/backends.h"
#include "pipeline/denoise.h"
#include "pipeline/injection.h"
#include "pipeline/model_set.h"

#include <sluice/sluice.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::pipeline {

// Rows the text is padded to; the result depends on it, since registers fill the rest.
inline constexpr std::int64_t kTextTokens = 1024;

struct PromptTokens {
  std::vector<ltx2::TokenId> ids;
  std::size_t tokens = 0;  // before cutting at kTextTokens
};

PromptTokens tokenize(const ltx2::Tokenizer& tokenizer, const std::string& prompt);

// "the prompt has 1300 tokens: the first 1024 are kept, 276 are dropped"; empty if none is.
std::string cut_warning(const PromptTokens& tokens, std::string_view which);

struct TextJob {  // one prompt, as text or as injected states
  std::optional<PromptTokens> tokens;
  std::optional<InjectedPrompt> injected;

  // Tokens that are computed; half a thousand where a plan knows no prompt.
  std::int64_t length() const;
};

using LayerObserver = std::function<void(std::int64_t done, std::int64_t total)>;  // may throw to stop

// A context a job, each that which the job has alone, to the bit.  `encoder` may be nullptr when every job is
// injected.  First the text encoder is the only tenant, then the connectors; where the states do not fit
// `limits` all at once (text_needs.h tells), the projections are read while the encoder waits.
std::vector<ltx2::TextContext> encode_text(const ModelSet& models, const TextEncoder* encoder,
                                           Backends& backends, std::span<const TextJob> jobs,
                                           at::ScalarType dtype, const LayerObserver& observer,
                                           const ltx2::FeatureLimits& limits = {});

// Of a prompt that is not padded but computed with the positions it has behind padding up to kTextTokens.
ltx2::GemmaInput gemma_input(const PromptTokens& tokens, at::ScalarType dtype);

}  // namespace sluice::pipeline
