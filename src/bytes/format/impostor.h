#pragma once
// Files that are something else than their name says, told by their first bytes: what a failed or half
// download leaves behind.  For weights, configs and tokenizers alike.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::bytes {

struct Impostor {
  std::string_view what;    // "a Git LFS pointer"
  std::string_view remedy;  // "run `git lfs pull` …"
};

// How many first bytes recognize_impostor() looks at, at most.
inline constexpr std::size_t kImpostorBytes = 512;

// `first`: the first bytes of the file, all of them if there are fewer; empty means an empty file.
std::optional<Impostor> recognize_impostor(std::span<const std::byte> first);

// Whether the file is an mp4 or one of its relatives: no checkpoint, but nothing broken either.  False where
// it cannot be read.
bool is_video(const std::filesystem::path& path);

// Error(bad_input) "<path>: is <what>, not <expected>" if the file is an impostor; also if it cannot be
// opened. `expected`: "a safetensors file", "a JSON config".
void refuse_impostor(const std::filesystem::path& path, std::string_view expected);

}  // namespace sluice::bytes
