#pragma once
// Checkpoints of random tensors, as awkward as the format allows: empty, scalar, tiny, at odd offsets, in
// several shards.

#include "support/synthetic_file.h"

#include <sluice/checkpoint.h>

#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace sluice::test {

struct RandomCheckpoint {
  TemporaryFolder folder;
  std::filesystem::path path;  // an index, or the one file
  std::map<std::string, std::string> contents;

  RandomCheckpoint(std::mt19937& random, std::size_t shards, std::size_t tensors,
                   std::int64_t most_elements) {
    std::vector<std::pair<std::string, std::string>> weight_map;
    for (std::size_t shard = 0; shard < shards; ++shard) {
      const std::string name = fmt::format("shard-{}.safetensors", shard);
      SyntheticFile file;
      // Data may begin at any offset: the header is as long as it is.
      file.pad_header(random() % 64);
      for (std::size_t i = 0; i < tensors; ++i) {
        const std::string tensor = fmt::format("s{}.t{}", shard, i);
        const Bytes before = file.data().size();
        file.tensor(tensor, any_dtype(random), any_shape(random, most_elements));
        contents[tensor] = file.data().substr(before);
        weight_map.emplace_back(tensor, name);
      }
      file.write_to(folder / name);
      path = folder / name;
    }
    if (shards == 1) return;
    path = folder / "model.safetensors.index.json";
    write_file(path, index_text(weight_map));
  }

 private:
  static Dtype any_dtype(std::mt19937& random) {
    constexpr std::array kDtypes{Dtype::U8,  Dtype::BOOL, Dtype::BF16,   Dtype::F16,
                                 Dtype::F32, Dtype::I64,  Dtype::F8_E4M3};
    return kDtypes[random() % kDtypes.size()];
  }
  static std::vector<std::int64_t> any_shape(std::mt19937& random, std::int64_t most_elements) {
    const auto most = static_cast<unsigned long>(most_elements);
    switch (random() % 6) {
      case 0:
        return {};
      case 1:
        return {0, 7};
      case 2:
        return {static_cast<std::int64_t>(1 + random() % 5)};
      case 3:
        return {3, static_cast<std::int64_t>(1 + random() % (most / 3)), 1};
      default:
        return {static_cast<std::int64_t>(1 + random() % most)};
    }
  }
};

}  // namespace sluice::test
