#include "pipeline/staging.h"

#include <fmt/format.h>

#include <utility>

namespace sluice::pipeline {
namespace {

struct Decision {
  Residence residence;
  weights::StageLimits limits;
  std::string reason;
};

constexpr weights::StageLimits kNothingStays{.resident_blocks = 0};

weights::StageLimits blocks(std::int64_t count) {
  return {.resident_blocks = static_cast<std::size_t>(count)};
}

// `auto`: in place where a mapping may be used and fits; else what fits stays and the rest streams.
Decision decide(const StagedComponent& component, const StagingRequest& request,
                const weights::StagePlan& whole, Bytes room) {
  if (request.resident_blocks && component.passes > 1 && request.backend != ReadBackend::mmap)
    return {Residence::disk, blocks(*request.resident_blocks), "--resident-blocks was given"};
  const Bytes bytes = whole.bytes_once();
  if (may_map(request.backend) && bytes <= room)
    return {Residence::mapped, {}, fmt::format("{} fit into memory", format_bytes(bytes))};
  const std::string why = fmt::format("{} do not fit beside the rest", format_bytes(bytes));
  if (request.backend == ReadBackend::mmap) return {Residence::window, {}, why};
  if (component.passes == 1) return {Residence::disk, kNothingStays, "each part is needed once"};
  if (whole.memory() <= room)
    return {Residence::memory, {}, fmt::format("{} fit into memory", format_bytes(bytes))};
  return {Residence::disk, {.budget = room}, why};
}

Decision decide_as_asked(const StagedComponent& component, const StagingRequest& request,
                         const weights::StagePlan& whole, Bytes room) {
  switch (request.from) {
    case StageFrom::automatic:
      return decide(component, request, whole, room);
    case StageFrom::memory:
    case StageFrom::device:
      return {request.backend == ReadBackend::mmap ? Residence::mapped : Residence::memory, {}, "asked for"};
    case StageFrom::disk:
      if (request.backend == ReadBackend::mmap) return {Residence::window, {}, "asked for"};
      return {Residence::disk, blocks(request.resident_blocks.value_or(0)), "asked for"};
  }
  return {};
}

}  // namespace

std::string_view to_string(Residence residence) {
  switch (residence) {
    case Residence::mapped:
      return "mapped";
    case Residence::window:
      return "mapped window";
    case Residence::memory:
      return "memory";
    case Residence::disk:
      return "disk";
  }
  return "";
}

ComponentStaging stage(const StagedComponent& component, const StagingRequest& request, Bytes room) {
  // Everything stays; a plan looks at every tensor, so it is made again only where some groups stream.
  weights::StagePlan whole = plan_stage(component.table, component.order);
  const Decision decision = decide_as_asked(component, request, whole, room);
  ComponentStaging staging{.component = component.table.name,
                           .residence = decision.residence,
                           .limits = decision.limits,
                           .plan = decision.residence == Residence::disk
                                       ? plan_stage(component.table, component.order, decision.limits)
                                       : std::move(whole),
                           .reason = decision.reason,
                           .passes = component.passes};
  const bool in_place = decision.residence == Residence::mapped || decision.residence == Residence::window;
  staging.bytes_once = staging.plan.bytes_once();
  if (!in_place) {
    staging.anonymous = staging.plan.memory();
    staging.bytes_again = staging.plan.bytes_per_pass();
  } else if (decision.residence == Residence::mapped) {
    staging.page_cache = staging.bytes_once;
  } else {
    const weights::StagePlan window = plan_window(component.table, component.order);
    staging.page_cache = window.memory();
    staging.bytes_again = window.bytes_per_pass();
  }
  return staging;
}

}  // namespace sluice::pipeline
