#pragma once
// One group as a load: which bytes of the files, where they lie in memory, and what each slot sees of them.
// Made once from the table, used for every lease.

#include "weights/pieces.h"

#include <sluice/load.h>
#include <sluice/sinks.h>

#include <vector>

namespace sluice::weights {

struct GroupLoad {
  struct Leased {
    Piece piece;
    std::size_t target = 0;  // of the plan; pieces that are the same bytes share one
  };

  LoadPlan plan;
  SlabLayout layout;  // in memory that begins at a multiple of 4096
  std::vector<Leased> leased;
};

GroupLoad plan_group(const ComponentTable& table, const ParameterGroup& group);

Bytes size_in_memory(const GroupLoad& load);  // whole pages

// Fills a slot with a tensor over the piece's bytes, which nobody writes to; the slots of a whole group, over
// memory that holds it as its layout says.
void lend(const Piece& piece, std::span<const std::byte> bytes);
void lend(const GroupLoad& load, std::span<const std::byte> memory);

}  // namespace sluice::weights
