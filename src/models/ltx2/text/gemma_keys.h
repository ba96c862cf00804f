#pragma once
// From the names in a text encoder's files to those of gemma.h.

#include "weights/component.h"

#include <span>

namespace sluice::ltx2 {

// The checkpoint under the names "embed_tokens.weight", "layers.<i>.…", "norm.weight".  On disk these have
// one of the prefixes language_model.model., model.language_model., model. or none.  Error(mismatch) naming
// both if two tensors come to one name.
weights::ComponentTable gemma_table(const Checkpoint& checkpoint);

// What a text encoder's files hold besides: vision tower, projector, output head, embedded tokenizer.
std::span<const weights::IgnoreRule> gemma_ignored();

}  // namespace sluice::ltx2
