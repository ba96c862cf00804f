#pragma once
// Which weights of a component stay in memory and which are read again for every pass.  A fixed set stays (a
// cache that throws out what was used longest ago hits nothing when a file larger than it is gone through in
// circles); the others go through slots in turn, the next one read while the last one is computed with.
//
//   const StagePlan plan = plan_stage(table, model.groups(), {.budget = GiB(4)});
//   auto source = make_staged_source(table, plan, {.read = {.backend = ReadBackend::direct}});
//   auto lease = source->acquire(block.parameters);      // as with every WeightSource

#include "weights/weight_source.h"

#include <sluice/load.h>

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace sluice::weights {

struct StageLimits {
  // Memory for resident groups and slots together; what does not fit streams.
  Bytes budget = std::numeric_limits<Bytes>::max();
  std::optional<std::size_t>
      resident_blocks;  // exactly so many of the large groups stay, whatever the budget
  std::size_t slots = 2;
};

struct StagePlan {
  struct Group {
    const ParameterGroup* group = nullptr;
    Bytes bytes = 0;        // in the files
    bool resident = false;  // read at its first lease and kept
  };
  std::vector<Group> groups;  // in the order in which they are used
  std::size_t slots = 0;      // 0 where everything is resident; at most as many as groups that stream
  Bytes slot_bytes = 0;       // each: the largest streamed group with its alignment
  Bytes resident_bytes = 0;   // with alignment

  Bytes memory() const { return resident_bytes + slots * slot_bytes; }
  Bytes bytes_once() const;      // read for the first pass over all groups
  Bytes bytes_per_pass() const;  // read for every pass after it: nothing where each group has a slot
  // Of the large groups, those that `resident_blocks` counts.
  std::size_t large_groups() const;
  std::size_t large_resident() const;
};

// `order`: the groups in the order of a pass, each once.  Groups smaller than a sixteenth of the largest
// always stay.  Where the budget does not even hold two slots the plan is the smallest there is; compare
// memory().
StagePlan plan_stage(const ComponentTable& table, std::span<const ParameterGroup* const> order,
                     const StageLimits& limits = {});

struct StageOptions {
  ReadOptions read;
  std::function<void(const LoadReport&)> loaded;  // told of every load, by the thread that leases
  std::function<void(const std::string&)> warn;   // refusals that were worked around; by the same thread
  const CancelToken* cancel = nullptr;            // outlives the source
  // How often the groups are gone through: nothing is read ahead for a pass behind the last.  0: nobody
  // knows.
  std::size_t passes = 0;
};

// Reads nothing before the first lease.  Memory is taken once, at the first lease, and kept until the source
// goes.  A thread of its own reads ahead: after the last group of a pass comes the first one again.  Groups
// may be leased in any order, the plan's order is only the guess of what comes next; a lease of the same
// group may be repeated while it is held; Error(does_not_fit) where more large groups are held at once than
// there are slots.  Errors of reading come out of the acquire() that needs the group; the next lease tries
// again.  Where the system refuses memory there are fewer slots, then fewer groups that stay; where it
// refuses the way of reading that was asked for, the page cache is read through: with a warning each.
std::unique_ptr<WeightSource> make_staged_source(const ComponentTable& table, StagePlan plan,
                                                 StageOptions options);

// Which groups a windowed source holds: its memory() is what of the files lies in the page cache at most, but
// for the pages at the ends of groups.
StagePlan plan_window(const ComponentTable& table, std::span<const ParameterGroup* const> order);

// As the source of a mapping (see weight_source.h), of which only the groups in use stay in the page cache:
// the next one of `order` is brought in while the last one is used, and a large one leaves the cache when its
// lease ends, also what was there before; unless the files were mapped to be kept.  Of the options `read` and
// `loaded` have no meaning.  A group that `order` lacks is looked at without a window.
std::unique_ptr<WeightSource> make_windowed_source(const ComponentTable& table,
                                                   std::shared_ptr<const bytes::MappedCheckpoint> files,
                                                   std::span<const ParameterGroup* const> order,
                                                   StageOptions options = {});

}  // namespace sluice::weights
