#include "base/text.h"
#include "bytes/format/checkpoint_state.h"
#include "bytes/read/chunks.h"

#include <sluice/error.h>

#include <fmt/format.h>

namespace sluice::bytes {

void check_range(const CheckpointAccess::State& state, const TensorInfo& tensor, Bytes skip, Bytes size) {
  bool in_tensor = skip <= tensor.size && size <= tensor.size - skip;
  bool in_file = tensor.shard < state.shards.size() &&
                 tensor.offset <= state.shards[tensor.shard].file_size &&
                 tensor.size <= state.shards[tensor.shard].file_size - tensor.offset;
  if (in_tensor && in_file) return;
  throw Error(ErrorKind::internal,
              fmt::format("{}: bytes {} to {} of tensor {} lie outside it", state.path.string(), skip,
                          skip + size, in_quotes(tensor.name)));
}

void read_range(const CheckpointAccess::State& state, const TensorInfo& tensor, Bytes skip,
                std::span<std::byte> to) {
  check_range(state, tensor, skip, to.size());
  std::string what = fmt::format("tensor {}", in_quotes(tensor.name));
  for_each_chunk(to.size(), [&](Bytes begin, Bytes size) {
    read_exact(state.files[tensor.shard], to.subspan(begin, size), tensor.offset + skip + begin, what);
  });
}

}  // namespace sluice::bytes
