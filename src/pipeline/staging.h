#pragma once
// Where a component's weights are while its phase computes, decided from its table and the memory there is.

#include "weights/stage.h"

#include <sluice/sluice.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice::pipeline {

enum class Residence {
  mapped,  // computed from where they lie; the page cache holds them
  window,  // the same, but only pages of the groups in use stay in the cache
  memory,  // read once, kept
  disk,    // through slots, some groups kept
};
std::string_view to_string(Residence residence);

// Whether weights may be computed from a mapping of their files.
constexpr bool may_map(ReadBackend backend) {
  return backend == ReadBackend::automatic || backend == ReadBackend::mmap;
}

struct StagingRequest {
  StageFrom from = StageFrom::automatic;
  ReadBackend backend = ReadBackend::automatic;
  std::optional<std::int64_t> resident_blocks;
};

struct StagedComponent {
  const weights::ComponentTable& table;
  std::span<const weights::ParameterGroup* const> order;  // of a pass
  std::int64_t passes = 1;                                // over all groups while the phase runs
};

struct ComponentStaging {
  std::string component;
  Residence residence = Residence::mapped;
  weights::StageLimits limits;  // for plan_stage(), which then gives `plan` again
  weights::StagePlan plan;
  std::string reason;
  std::int64_t passes = 1;
  Bytes anonymous = 0;    // slots and what stays
  Bytes page_cache = 0;   // of the component's files
  Bytes bytes_once = 0;   // read for the first pass
  Bytes bytes_again = 0;  // for every further one
};

// `room`: memory for the weights, anonymous and page cache together.  Where nothing fits, the smallest that
// works; whether it fits is the caller's to compare.
ComponentStaging stage(const StagedComponent& component, const StagingRequest& request, Bytes room);

}  // namespace sluice::pipeline
