#include "pipeline/remedy.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

namespace sluice::pipeline {
namespace {

class Search {
 public:
  Search(const RunInputs& inputs, const MemoryBudget& budget, Bytes program)
      : inputs_(inputs), budget_(budget), program_(program) {}

  std::optional<Remedy> run() const {
    if (auto found = freed_settings()) return found;
    if (auto found = one_clip()) return found;
    if (auto found = fewer_frames(inputs_.request)) return found;
    if (auto found = smaller_picture(inputs_.request)) return found;
    Request one_latent = released(inputs_.request);
    one_latent.frames = 1;
    return smaller_picture(one_latent);
  }

 private:
  // Without what the user asked for about memory.
  static Request released(Request request) {
    request.stage_from = StageFrom::automatic;
    request.resident_blocks.reset();
    if (request.decode == DecodeMode::whole) request.decode = DecodeMode::automatic;
    return request;
  }

  std::string flags_of(const Request& request) const {
    std::string flags;
    auto add = [&](bool differs, const std::string& flag) {
      if (differs) flags += (flags.empty() ? "" : " ") + flag;
    };
    const Request& own = inputs_.request;
    add(own.stage_from != request.stage_from || own.resident_blocks != request.resident_blocks,
        "--stage-from auto without --resident-blocks");
    add(own.decode != request.decode, "--decode auto");
    add(own.count != request.count, fmt::format("--count {}", request.count));
    add(own.frames != request.frames, fmt::format("--frames {}", request.frames));
    add(own.width != request.width || own.height != request.height,
        fmt::format("--width {} --height {}", request.width, request.height));
    return flags;
  }

  std::optional<Remedy> fits(const Request& request, std::string loses) const {
    std::optional<Settings> settings;
    try {
      settings = settle(request, inputs_.models, inputs_.settle);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
      return std::nullopt;  // what is given does not go with it
    }
    RunPlan plan = plan_run({.models = inputs_.models,
                             .encoder = inputs_.encoder,
                             .upsampler = inputs_.upsampler,
                             .adapters = inputs_.adapters,
                             .request = request,
                             .settings = *settings,
                             .settle = inputs_.settle,
                             .prompt_tokens = inputs_.prompt_tokens,
                             .sound = inputs_.sound,
                             .video = inputs_.video,
                             .video_file = inputs_.video_file},
                            budget_, program_);
    if (plan.too_large()) return std::nullopt;
    if (!plan.warnings.empty()) loses += ", and tiles of the picture are blended";
    return Remedy{flags_of(request), std::move(loses), std::move(plan)};
  }

  std::optional<Remedy> freed_settings() const {
    const Request request = released(inputs_.request);
    if (flags_of(request).empty()) return std::nullopt;
    return fits(request, "nothing");
  }

  std::optional<Remedy> one_clip() const {
    if (inputs_.request.count == 1) return std::nullopt;
    Request request = released(inputs_.request);
    request.count = 1;
    return fits(request, "one clip at a time");
  }

  // The longest that fits: needs grow with the length, so half of what is left is ruled out at a time.
  std::optional<Remedy> fewer_frames(const Request& from) const {
    const std::int64_t step = inputs_.models.compression().frames;
    Request request = released(from);
    std::optional<Remedy> best;
    std::int64_t low = 0, high = (from.frames - 1) / step - 1;
    while (low <= high) {
      const std::int64_t middle = low + (high - low) / 2;
      request.frames = middle * step + 1;
      if (auto found = fits(request, "a shorter clip")) {
        best = std::move(found);
        low = middle + 1;
      } else {
        high = middle - 1;
      }
    }
    return best;
  }

  std::optional<Remedy> smaller_picture(const Request& from) const {
    const std::int64_t step = inputs_.models.compression().pixels * (from.two_stage ? 2 : 1);
    Request request = released(from);
    const std::int64_t larger = std::max(from.width, from.height);
    for (std::int64_t side = larger - step; side >= step; side -= step) {
      auto scaled = [&](std::int64_t length) { return std::max(length * side / larger / step * step, step); };
      request.width = scaled(from.width);
      request.height = scaled(from.height);
      if (auto found = fits(request, "a smaller picture")) return found;
    }
    return std::nullopt;
  }

  const RunInputs& inputs_;
  const MemoryBudget& budget_;
  const Bytes program_;
};

std::string consists_of(const RunPlan& plan, const PhasePlan& phase) {
  std::vector<std::string> parts = {fmt::format("{} held by the program", format_bytes(plan.program))};
  for (const MemoryPart& part : phase.parts)
    parts.push_back(fmt::format("{} of {}", format_bytes(part.bytes), part.what));
  for (const ComponentStaging& staging : phase.staging) {
    parts.push_back(fmt::format("{} of {} weights ({})", format_bytes(staging.anonymous + staging.page_cache),
                                staging.component, to_string(staging.residence)));
  }
  parts.push_back(fmt::format("{} left for what cannot be counted", format_bytes(plan.reserve())));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string no_way_out(const PhasePlan& phase) {
  if (phase.name.starts_with("condition"))
    return "give smaller pictures, videos or sounds, or raise the limit: no smaller clip alone would fit";
  return "not even the smallest clip fits: free memory, or raise the limit";
}

}  // namespace

std::optional<Remedy> smallest_change(const RunInputs& inputs, const MemoryBudget& budget, Bytes program) {
  return Search(inputs, budget, program).run();
}

void refuse(const RunInputs& inputs, const RunPlan& plan) {
  const PhasePlan& phase = *plan.too_large();
  const auto remedy = smallest_change(inputs, plan.budget, plan.program);
  throw Error(ErrorKind::does_not_fit,
              fmt::format("not enough memory for the phase '{}': it needs {} ({}), the limit is {} ({})",
                          phase.name, format_bytes(plan.memory(phase) + plan.reserve()),
                          consists_of(plan, phase), format_bytes(plan.budget.total), plan.budget.source),
              remedy ? fmt::format("{} fits: {} at most", remedy->flags, format_bytes(remedy->plan.peak()))
                     : no_way_out(phase));
}

}  // namespace sluice::pipeline
