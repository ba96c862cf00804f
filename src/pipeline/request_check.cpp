#include "pipeline/request_check.h"

#include "models/ltx2/text/utf8.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace sluice::pipeline {
namespace {

constexpr std::int64_t kLargestSide = 8192;
constexpr std::int64_t kMostFrames = 10001;
constexpr std::int64_t kMostSteps = 1000;  // as many as there were noise levels in training

// The valid values around `value`: multiples of `step` plus `offset`, at least `offset` or one step.
std::string neighbours(std::int64_t value, std::int64_t step, std::int64_t offset, std::int64_t most) {
  const std::int64_t least = offset > 0 ? offset : step;
  const std::int64_t greatest = (most - offset) / step * step + offset;
  if (value < least) return fmt::format("use {} or more", least);
  if (value > greatest) return fmt::format("use {} or less", greatest);
  const std::int64_t below = (value - offset) / step * step + offset;
  if (below < least) return fmt::format("use {}", least);
  return fmt::format("use {} or {}", below, below + step);
}

void check_side(std::string_view name, std::int64_t value, std::int64_t step) {
  if (value > 0 && value % step == 0 && value <= kLargestSide) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("--{} {} is no multiple of {} between {} and {}", name, value, step, step, kLargestSide),
      neighbours(value, step, 0, kLargestSide));
}

void check_text(std::string_view which, const std::string& text) {
  const auto wrong = ltx2::find_invalid_utf8(text);
  if (!wrong) return;
  throw Error(ErrorKind::usage,
              fmt::format("the {} is not UTF-8: byte {} is 0x{:02x}", which, *wrong,
                          static_cast<unsigned>(static_cast<unsigned char>(text[*wrong]))),
              "check the encoding of the terminal or of the file that the prompt comes from");
}

void check_scales(std::string_view prefix, const GuidanceRequest& scales) {
  for (const auto& [name, scale] :
       {std::pair("guidance", scales.cfg), std::pair("stg", scales.stg),
        std::pair("modality-guidance", scales.modality), std::pair("rescale", scales.rescale)}) {
    if (!scale || std::isfinite(*scale)) continue;
    throw Error(ErrorKind::usage, fmt::format("--{}{} {} is no finite number", prefix, name, *scale),
                "give a number such as 3.0");
  }
}

void check_range(std::string_view flag, double value, double least, double most) {
  if (value >= least && value <= most) return;  // false for NaN
  throw Error(ErrorKind::usage, fmt::format("--{} {} is not between {} and {}", flag, value, least, most),
              fmt::format("give a number from {} to {}", least, most));
}

void check_shares(const Request& request) {
  constexpr int kWorstCrf = 51;
  constexpr std::int64_t kMostClips = 64;
  constexpr double kMostStrength = 100;
  if (request.image_crf) check_range("image-crf", *request.image_crf, 0, kWorstCrf);
  check_range("count", static_cast<double>(request.count), 1, kMostClips);
  auto adapters = [](const std::vector<Adapter>& list) {
    for (const Adapter& adapter : list)
      check_range("lora strength", adapter.strength, -kMostStrength, kMostStrength);
  };
  adapters(request.adapters);
  if (!request.two_stage) return;
  check_range("adain", request.two_stage->adain, 0, 1);
  check_range("tone-map", request.two_stage->tone_map, 0, 1);
  adapters(request.two_stage->adapters);
}

}  // namespace

void check_values(const Request& request) {
  check_text("prompt", request.prompt);
  check_text("negative prompt", request.negative_prompt);
  check_scales("", request.guidance);
  check_scales("audio-", request.audio_guidance);
  check_shares(request);
  const std::int64_t steps = request.steps.value_or(1);
  if (steps < 1 || steps > kMostSteps) {
    throw Error(ErrorKind::usage, fmt::format("--steps {} is not between 1 and {}", steps, kMostSteps),
                fmt::format("use {}", steps < 1 ? "1 or more" : fmt::format("{} or less", kMostSteps)));
  }
}

void check_sizes(const Request& request, const sampling::VideoCompression& compression) {
  // The first of two stages has half the size.
  const std::int64_t side = request.two_stage ? 2 * compression.pixels : compression.pixels;
  check_side("width", request.width, side);
  check_side("height", request.height, side);
  const std::int64_t step = compression.frames;
  if (request.frames < 1 || request.frames > kMostFrames || (request.frames - 1) % step != 0) {
    throw Error(ErrorKind::usage,
                fmt::format("--frames {} is not {}k+1 between 1 and {}", request.frames, step, kMostFrames),
                neighbours(request.frames, step, 1, kMostFrames));
  }
  if (request.fps.num <= 0 || request.fps.den <= 0) {
    throw Error(ErrorKind::usage, fmt::format("--fps {} is no rate above 0", to_string(request.fps)),
                "use 24");
  }
}

void check_given_length(const Request& request, std::int64_t frames) {
  if (request.frames != 0 || frames <= kMostFrames) return;
  const auto& file = request.audio.empty() ? request.videos.front().file : request.audio;
  throw Error(ErrorKind::usage,
              fmt::format("{}: it lasts {} frames at {} a second, a clip has {} at most", file.string(),
                          frames, to_string(request.fps), kMostFrames),
              "say with --frames how much of it is wanted");
}

std::vector<std::string> unusual_sizes(const Request& request) {
  std::vector<std::string> warnings;
  const double fps = request.fps.value();
  if (fps < 23.9 || fps > 60) {
    warnings.push_back(
        fmt::format("{} frames a second: the model was trained for 24 to 60", to_string(request.fps)));
  }
  const double seconds = static_cast<double>(request.frames) / fps;
  if (seconds > 20) {
    warnings.push_back(
        fmt::format("the clip lasts {:.1f} s: the model was trained for 20 s at most", seconds));
  }
  return warnings;
}

}  // namespace sluice::pipeline
