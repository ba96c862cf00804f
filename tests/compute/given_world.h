#pragma once
// What these tests give the program beside words: clips of the demo model itself, sounds, upsamplers,
// adapters.

#include "compute/world.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sluice::test {

// Another world than that of demo_clip()'s prompt, so that a clip tells what it was given.
inline constexpr const char* kOtherPrompt = "a yellow square moves up on a black background, low tone";

// generate --model … of the demo's clip in f32, and `more`.
Arguments given_clip(const Arguments& more);
// The same in two steps, for what does not depend on how good it gets.
Arguments short_clip(const Arguments& more);

// A clip of kOtherPrompt as files in a folder: clip.mp4, clip.wav, frames/, latents.  Made once a process.
const fs::path& earlier_clip();

// 16 bits, channels in turn.
struct Samples {
  int sample_rate = 0;
  int channels = 0;
  std::vector<std::int16_t> values;
};
Samples read_samples(const fs::path& wav);  // a plain one of 16 bits
// Two channels: a tone and a slow one, with noise of that seed.
Samples tones(int sample_rate, double seconds, unsigned seed);
void write_samples(const fs::path& wav, const Samples& samples);

// By sluice-synth, with more of its flags.  Returns `file`.
fs::path write_upsampler(const fs::path& file, const Arguments& more = {});

nlohmann::json read_json(const fs::path& file);
std::vector<std::string> phase_names(const nlohmann::json& report);  // of a report or a plan

// The latents of one frame, [channels][height · width] in a file's [1, channels, frames, …].
struct LatentShape {
  std::size_t channels, frames, inner;
};
Values frame_of(const Values& latents, const LatentShape& shape, std::size_t frame);

}  // namespace sluice::test
