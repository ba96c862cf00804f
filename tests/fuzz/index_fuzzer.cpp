// Any bytes as the index of a set of shards.
#include "bytes/format/shard_index.h"
#include "fuzz/check.h"

#include <algorithm>
#include <functional>

namespace sluice::fuzz {
namespace {

constexpr std::string_view kFile = "model.safetensors.index.json";

void check_index(const bytes::ShardIndex& index) {
  using Entry = bytes::ShardIndex::Entry;
  require(!index.entries.empty(), "an index names tensors");
  require(std::ranges::adjacent_find(index.shards, std::ranges::greater_equal{}) == index.shards.end(),
          "shards are sorted and unique");
  require(std::ranges::adjacent_find(index.entries, std::ranges::greater_equal{}, &Entry::tensor) ==
              index.entries.end(),
          "tensors are sorted and unique");
  std::vector<bool> used(index.shards.size());
  for (const Entry& entry : index.entries) {
    require(entry.shard < index.shards.size(), "a tensor's shard is one of those listed");
    used[entry.shard] = true;
  }
  require(std::ranges::find(used, false) == used.end(), "every shard holds a tensor");
  for (const std::string& shard : index.shards) {
    require(shard.find('/') == std::string::npos && shard != "." && shard != ".." && !shard.empty(),
            "a shard lies beside its index");
    require(shard.size() <= 255 && printable(shard) == shard, "a shard's name can stand in a message");
  }
}

}  // namespace
}  // namespace sluice::fuzz

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  using namespace sluice::fuzz;
  try {
    check_index(sluice::bytes::parse_shard_index({data, size}, kFile));
  } catch (const sluice::Error& error) {
    check_refusal(error, kFile);
  }
  return 0;
}
