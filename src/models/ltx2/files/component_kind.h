#pragma once
// The components a checkpoint of the LTX-2 family is made of (the text encoder has files of its own).

#include <array>
#include <string_view>

namespace sluice::ltx2 {

enum class ComponentKind { transformer, connectors, vae, audio_vae, vocoder };

inline constexpr std::array kComponentKinds = {ComponentKind::transformer, ComponentKind::connectors,
                                               ComponentKind::vae, ComponentKind::audio_vae,
                                               ComponentKind::vocoder};

// The name of the folder in a diffusers layout, which is also the name in messages.
constexpr std::string_view to_string(ComponentKind kind) {
  constexpr std::array<std::string_view, 5> names = {"transformer", "connectors", "vae", "audio_vae",
                                                     "vocoder"};
  return names[static_cast<std::size_t>(kind)];
}

// The class that a diffusers folder's config names.
constexpr std::string_view diffusers_class(ComponentKind kind) {
  constexpr std::array<std::string_view, 5> names = {"LTX2VideoTransformer3DModel", "LTX2TextConnectors",
                                                     "AutoencoderKLLTX2Video", "AutoencoderKLLTX2Audio",
                                                     "LTX2VocoderWithBWE"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace sluice::ltx2
