#pragma once
// Loads the wanted ranges of one shard: collects facts, chooses a way, falls back where the system refuses,
// and runs one pass.

#include "bytes/load/deliverer.h"
#include "bytes/load/load_pool.h"
#include "bytes/load/load_warnings.h"

#include <functional>
#include <span>

namespace sluice::bytes {

struct ShardLoad {
  const PlanState& plan;
  std::size_t shard = 0;
  std::span<const WantedRange> ranges;
  Deliverer& deliverer;
  bool fresh = false;  // destinations have never been touched
};

// delivered(bytes): after each read, in the caller's thread.
ShardLoadReport load_shard(const ShardLoad& work, const ReadOptions& options, LoadPool& pool,
                           LoadWarnings& warnings, const CancelToken* cancel,
                           const std::function<void(Bytes)>& delivered);

}  // namespace sluice::bytes
