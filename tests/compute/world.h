#pragma once
// The checkpoints that these tests run the program with, and what they compare.
//   fixture: every component, two blocks; its vocoder does not fit its audio VAE, so no sound; no text
//   encoder demo:    a trained model with sound and text encoder, 64 x 64 pixels and 17 frames

#include "support/program.h"
#include "support/temporary_folder.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sluice::test {

namespace fs = std::filesystem;

fs::path fixture_file();    // one file with all components
fs::path fixture_folder();  // the same as a diffusers folder
fs::path fixture_inject();  // noise and prompt states for fixture_flags()
fs::path demo_model();
fs::path demo_text_encoder();

// Of the clip that fixture_inject() has noise for; f32, one thread, no sound.
Arguments fixture_flags();
Arguments fixture_clip(
    const fs::path& model = fixture_file());  // generate --model … --inject … and the flags
Arguments demo_flags();                       // sizes, prompt and text encoder
Arguments demo_clip();                        // generate --model … and the flags

using Values = std::vector<float>;
// Every tensor of a safetensors file; f32, u8 or whole numbers of 64 bits.
std::map<std::string, Values> read_values(const fs::path& file);

// Copies of the files with other bytes; both must exist.
testing::AssertionResult same_bytes(const fs::path& one, const fs::path& other);

// All files of a folder, by name.
testing::AssertionResult same_files(const fs::path& one, const fs::path& other);

// A copy of the fixture's diffusers folder; `folder` must not exist.
void copy_fixture_folder(const fs::path& folder);

}  // namespace sluice::test
