#pragma once
// What a synthetic checkpoint is made from: the configuration that a published single file carries in its
// metadata, and the one number which stands only in the shapes of a published file.

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace sluice::synth {

struct Sizes {
  nlohmann::json config;          // the metadata's "config": transformer, vae, audio_vae, vocoder, scheduler
  std::int64_t text_states = 49;  // states of the text encoder, its layers + 1
};

// "tiny": every mechanism at widths that run in a moment; "22b": LTX-2.3 as published.  Error(usage)
// otherwise.
Sizes preset(std::string_view name);

// A JSON file with the config's objects at the top, and "text_states" beside them (default as published).
// Error(bad_input).
Sizes read_sizes(const std::filesystem::path& path);

// The same with another number of transformer blocks.
Sizes with_blocks(Sizes sizes, std::int64_t blocks);

}  // namespace sluice::synth
