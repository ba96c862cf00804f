#pragma once
// What reading the configurations of the video autoencoder's two halves has in common.

#include "models/ltx2/video_vae/config.h"
#include "nn/config_reader.h"

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::ltx2::vae_config {

using Numbers = std::vector<std::int64_t>;

// Error(bad_input) with the config's name before `what`.
Error bad(const nn::ConfigReader& read, const std::string& what);

// A list with one entry a block; diffusers also takes a single boolean for all.
std::vector<bool> flags(const nn::ConfigReader& read, std::string_view key, std::size_t count);

template <typename T>
void expect_entries(const nn::ConfigReader& read, std::string_view key, const std::vector<T>& list,
                    std::size_t count) {
  if (list.size() != count)
    throw bad(read, fmt::format("'{}' has {} entries, its blocks need {}", key, list.size(), count));
}

SpatialPadding padding_mode(const nn::ConfigReader& read, std::string_view key);

// Strides of a block's sampler by the name of its type, one of `key`'s.
template <typename Block>
void set_strides(const nn::ConfigReader& read, std::string_view key, const std::string& type, Block& block) {
  if (type != "spatial" && type != "temporal" && type != "spatiotemporal") throw read.unsupported(key);
  block.stride_t = type == "spatial" ? 1 : 2;
  block.stride_h = block.stride_w = type == "temporal" ? 1 : 2;
}

template <typename Block>
std::int64_t product(const std::vector<Block>& blocks, std::int64_t Block::*member) {
  return std::transform_reduce(blocks.begin(), blocks.end(), std::int64_t{1}, std::multiplies<>{},
                               [&](const Block& block) { return block.*member; });
}

// What the config says, if it does, against what the blocks of `half` make.
void check_ratio(const nn::ConfigReader& read, std::string_view key, std::int64_t computed,
                 std::string_view half);

}  // namespace sluice::ltx2::vae_config
