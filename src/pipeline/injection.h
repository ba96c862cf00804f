#pragma once
// Values that a request brings instead of having them drawn or computed, from a safetensors file.

#include "pipeline/settings.h"

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <optional>

namespace sluice::pipeline {

struct InjectedPrompt {
  at::Tensor embeds;  // flattened states [1, tokens, channels · states], before normalization
  at::Tensor mask;    // [1, tokens]; all ones if the file has none
};

struct Injection {
  at::Tensor video_noise;  // packed [1, tokens, channels], f32; undefined: drawn
  at::Tensor audio_noise;
  std::optional<InjectedPrompt> positive;
  std::optional<InjectedPrompt> negative;
};

enum class Values { read, shapes_only };  // shapes only: tensors of these shapes without the file's numbers

// Noise may be packed or as the latents are ([1, C, F, H, W], [1, C, L, M]).  Error(bad_input) with both
// shapes for anything that does not fit the request, for unknown names and (Error(non_finite)) for values
// that are no numbers.
Injection read_injection(const std::filesystem::path& path, const Settings& settings, Values values);

}  // namespace sluice::pipeline
