#pragma once
// The encoder halves of both autoencoders: names and shapes only, since this program generates and does not
// encode. After AutoencoderKLLTX2Video and AutoencoderKLLTX2Audio of diffusers 0.42.1, pixel norms without
// weights.

#include "synth/named_shape.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <vector>

namespace sluice::synth {

// config: under diffusers' keys; base_channels: the width of conv_in, which they do not say.
std::vector<NamedShape> video_encoder(const nlohmann::json& config, std::int64_t base_channels);
std::vector<NamedShape> audio_encoder(const nlohmann::json& config);

}  // namespace sluice::synth
