#include "weights/group_load.h"

#include "bytes/plan/plan_pieces.h"
#include "weights/dtype.h"

#include <ATen/ATen.h>

#include <map>
#include <tuple>

namespace sluice::weights {

GroupLoad plan_group(const ComponentTable& table, const ParameterGroup& group) {
  GroupLoad load;
  std::map<std::tuple<std::size_t, Bytes, Bytes>, std::size_t> targets;  // by shard, offset, size
  auto extent_of = [](const TensorInfo& bytes) { return std::tuple(bytes.shard, bytes.offset, bytes.size); };
  for (Piece& piece : pieces_of(table, group)) {
    targets.emplace(extent_of(piece.bytes), 0);
    load.leased.push_back({std::move(piece)});
  }
  std::vector<TensorInfo> pieces(targets.size());
  std::size_t next = 0;
  for (auto& [extent, target] : targets) target = next++;
  for (GroupLoad::Leased& leased : load.leased) {
    leased.target = targets.at(extent_of(leased.piece.bytes));
    pieces[leased.target] = leased.piece.bytes;
  }
  load.plan = bytes::plan_pieces(table.checkpoint, pieces);
  load.layout = lay_out(load.plan);
  return load;
}

Bytes size_in_memory(const GroupLoad& load) {
  constexpr Bytes kPage = 4096;
  return (load.layout.size + kPage - 1) / kPage * kPage;
}

void lend(const Piece& piece, std::span<const std::byte> bytes) {
  // LibTorch has no read-only tensor.
  const at::Tensor over = at::from_blob(const_cast<std::byte*>(bytes.data()), piece.bytes.shape,
                                        at::TensorOptions().dtype(to_scalar_type(piece.bytes.dtype)));
  *piece.slot = piece.widened ? over.to(at::kBFloat16) : over;
}

void lend(const GroupLoad& load, std::span<const std::byte> memory) {
  for (const auto& [piece, target] : load.leased)
    lend(piece, memory.subspan(load.layout.offsets[target], piece.bytes.size));
}

}  // namespace sluice::weights
