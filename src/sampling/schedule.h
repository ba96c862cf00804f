#pragma once
// Sigma schedules of flow matching, x_t = (1 - sigma) · x0 + sigma · noise: given lists, and the dev schedule
// that is shifted by the number of video tokens and stretched to a terminal value.  Pure functions, safe from
// any thread. Source: diffusers FlowMatchEulerDiscreteScheduler.set_timesteps and calculate_shift of its
// LTX2Pipeline; rounding is theirs (lists in f64, rounded once to f32, all arithmetic after that in f32), so
// that the numbers are equal.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::sampling {

// Keys and defaults as in a scheduler_config.json of diffusers.
struct SchedulerConfig {
  bool use_dynamic_shifting = false;  // shift by the number of tokens instead of by `shift`
  double base_shift = 0.5;            // mu at base_image_seq_len tokens
  double max_shift = 1.15;            // mu at max_image_seq_len tokens; not clamped beyond
  std::int64_t base_image_seq_len = 256;
  std::int64_t max_image_seq_len = 4096;
  double shift = 1.0;
  std::optional<double> shift_terminal;  // last sigma before the final 0; empty: not stretched
};

// From the text of a scheduler_config.json; keys that do not matter here are left alone.  Error(bad_input)
// for text that is no such object, a value of the wrong type, and options that are not supported (Karras,
// beta or exponential sigmas, a linear shift, inverted sigmas, stochastic sampling, other than 1000 training
// steps), named with the key.
SchedulerConfig parse_scheduler_config(std::string_view json);

// What a checkpoint without a scheduler_config.json is used with.
SchedulerConfig dev_scheduler();
SchedulerConfig distilled_scheduler();  // leaves a list as it is

std::span<const double> distilled_sigmas();  // 8 steps
std::span<const double> stage_2_sigmas();    // 3 steps, the end of the distilled list

// linspace(1, 1 / steps, steps): what the dev schedule starts from.  Error(usage) unless 1 <= steps <= 1000.
std::vector<double> evenly_spaced_sigmas(std::int64_t steps);

// mu = m · tokens + b, through (base_image_seq_len, base_shift) and (max_image_seq_len, max_shift).
// `tokens`: video tokens as the transformer sees them, appended keyframes counted.  The official pipelines
// always use 4096 tokens instead.
double shift_for_tokens(const SchedulerConfig& config, std::int64_t tokens);

struct Schedule {
  std::vector<float> sigmas;     // steps + 1, the last one 0
  std::vector<float> timesteps;  // steps; sigma · 1000

  std::int64_t steps() const { return static_cast<std::int64_t>(timesteps.size()); }
};

// Shifts and stretches `sigmas` (without the final 0) as the config says.  A distilled list through the dev
// config is shifted like any other, as in the reference: pass distilled_scheduler() where the list is meant
// as it stands. Error(usage) unless the sigmas lie in (0, 1] and fall strictly, and for the single
// sigma 1 when it is to be stretched.
Schedule make_schedule(const SchedulerConfig& config, std::span<const double> sigmas,
                       std::int64_t video_tokens);

}  // namespace sluice::sampling
