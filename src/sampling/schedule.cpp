#include "sampling/schedule.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace sluice::sampling {
namespace {

// Pre-trained sigmas of the distilled models (diffusers pipelines/ltx2/utils.py, official ltx_pipelines
// constants).
constexpr std::array kDistilledSigmas = {1.0, 0.99375, 0.9875, 0.98125, 0.975, 0.909375, 0.725, 0.421875};
constexpr std::size_t kStage2Steps = 3;
constexpr float kTrainTimesteps = 1000.0f;

void check_sigmas(std::span<const double> sigmas) {
  if (sigmas.empty()) throw Error(ErrorKind::usage, "no sigmas given", "give at least one, e.g. 1.0,0.5");
  for (std::size_t i = 0; i < sigmas.size(); ++i) {
    if (i > 0 && i + 1 == sigmas.size() && sigmas[i] == 0.0)
      throw Error(ErrorKind::usage, "the list of sigmas ends in 0",
                  "leave it out: the final 0 is added to every list");
    if (!(sigmas[i] > 0.0 && sigmas[i] <= 1.0))
      throw Error(ErrorKind::usage, fmt::format("sigma {} of the list is {}, outside (0, 1]", i, sigmas[i]),
                  "sigmas are noise levels: 1 is pure noise");
    if (i > 0 && !(sigmas[i] < sigmas[i - 1]))
      throw Error(
          ErrorKind::usage,
          fmt::format("sigma {} of the list is {}, not below {} before it", i, sigmas[i], sigmas[i - 1]),
          "give sigmas from high to low, each once");
  }
}

// The reference computes on a float32 array with Python numbers: each number is rounded to f32 first.
void shift_exponentially(std::vector<float>& sigmas, double mu) {
  const auto e = static_cast<float>(std::exp(mu));
  for (float& sigma : sigmas) sigma = e / (e + (1.0f / sigma - 1.0f));
}

void shift_statically(std::vector<float>& sigmas, double shift) {
  const auto factor = static_cast<float>(shift);
  const auto less_one = static_cast<float>(shift - 1.0);
  for (float& sigma : sigmas) sigma = factor * sigma / (1.0f + less_one * sigma);
}

void stretch_to_terminal(std::vector<float>& sigmas, double terminal) {
  // The reference divides 0 by 0 here.
  if (sigmas.back() == 1.0f)
    throw Error(ErrorKind::usage, fmt::format("a schedule whose only sigma is 1 cannot end at {}", terminal),
                "take at least 2 steps, or a list of sigmas that is used as it stands");
  const float scale = (1.0f - sigmas.back()) / static_cast<float>(1.0 - terminal);
  for (float& sigma : sigmas) sigma = 1.0f - (1.0f - sigma) / scale;
}

}  // namespace

SchedulerConfig dev_scheduler() {
  return {.use_dynamic_shifting = true,
          .base_shift = 0.95,
          .max_shift = 2.05,
          .base_image_seq_len = 1024,
          .max_image_seq_len = 4096,
          .shift_terminal = 0.1};
}

SchedulerConfig distilled_scheduler() {
  SchedulerConfig config = dev_scheduler();
  config.use_dynamic_shifting = false;
  config.shift_terminal.reset();
  return config;
}

std::span<const double> distilled_sigmas() {
  return kDistilledSigmas;
}

std::span<const double> stage_2_sigmas() {
  return std::span<const double>(kDistilledSigmas).last(kStage2Steps);
}

std::vector<double> evenly_spaced_sigmas(std::int64_t steps) {
  constexpr auto kMost = static_cast<std::int64_t>(kTrainTimesteps);
  if (steps < 1 || steps > kMost)
    throw Error(ErrorKind::usage, fmt::format("{} denoising steps", steps),
                fmt::format("take between 1 and {}, as many as the model knows noise levels", kMost));
  std::vector<double> sigmas(static_cast<std::size_t>(steps));
  const double last = 1.0 / static_cast<double>(steps);
  // numpy's linspace: i · step + start, the last value set to the end itself.
  const double step = (last - 1.0) / static_cast<double>(steps - 1);
  for (std::size_t i = 0; i + 1 < sigmas.size(); ++i) sigmas[i] = static_cast<double>(i) * step + 1.0;
  sigmas.back() = last;
  return sigmas;
}

double shift_for_tokens(const SchedulerConfig& config, std::int64_t tokens) {
  const double m = (config.max_shift - config.base_shift) /
                   static_cast<double>(config.max_image_seq_len - config.base_image_seq_len);
  const double b = config.base_shift - m * static_cast<double>(config.base_image_seq_len);
  return static_cast<double>(tokens) * m + b;
}

Schedule make_schedule(const SchedulerConfig& config, std::span<const double> sigmas,
                       std::int64_t video_tokens) {
  check_sigmas(sigmas);
  Schedule schedule;
  schedule.sigmas.assign(sigmas.begin(), sigmas.end());
  if (config.use_dynamic_shifting) {
    shift_exponentially(schedule.sigmas, shift_for_tokens(config, video_tokens));
  } else {
    shift_statically(schedule.sigmas, config.shift);
  }
  if (config.shift_terminal) stretch_to_terminal(schedule.sigmas, *config.shift_terminal);
  for (float sigma : schedule.sigmas) schedule.timesteps.push_back(sigma * kTrainTimesteps);
  schedule.sigmas.push_back(0.0f);
  return schedule;
}

}  // namespace sluice::sampling
