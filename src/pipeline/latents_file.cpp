#include "pipeline/latents_file.h"

#include "base/log.h"
#include "sampling/finite.h"
#include "weights/tensor_file.h"

#include <sluice/checkpoint.h>
#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sluice::pipeline {
namespace {

at::Tensor take(const weights::TensorMap& tensors, const std::string& name,
                const std::vector<std::int64_t>& shape, const std::filesystem::path& path) {
  auto found = tensors.find(name);
  if (found == tensors.end()) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: there is no tensor '{}'", path.string(), name),
                "give a file that sluice wrote with --latents");
  }
  if (found->second.sizes() != at::IntArrayRef(shape)) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: '{}' is {}, the request needs {}", path.string(), name,
                            format_shape(found->second.sizes().vec()), format_shape(shape)),
                "ask for the width, height, frames and rate that the latents were made with");
  }
  at::Tensor latents = found->second.to(at::kFloat);
  sampling::check_finite(latents, fmt::format("{}: '{}'", path.string(), name));
  return latents;
}

void warn_if_unfinished(const std::filesystem::path& path) {
  const auto& metadata = Checkpoint::open(path).metadata();
  auto done = metadata.find("steps_done"), all = metadata.find("steps");
  if (done == metadata.end() || all == metadata.end() || done->second == all->second) return;
  log_warning(fmt::format("{}: denoised for {} of {} steps only", path.string(), done->second, all->second));
}

}  // namespace

void write_latents(const std::filesystem::path& path, const ClipLatents& latents, StepsDone steps) {
  weights::write_tensors(path, {{"video_latents", latents.video}, {"audio_latents", latents.audio}},
                         {{"layout", "video [B, C, F, H, W], audio [B, C, L, M], denormalized"},
                          {"steps_done", std::to_string(steps.done)},
                          {"steps", std::to_string(steps.of)}});
}

ClipLatents read_latents(const std::filesystem::path& path, const Settings& settings) {
  warn_if_unfinished(path);
  const auto tensors = weights::read_tensors(path);
  const auto& v = settings.video;
  const auto& a = settings.audio;
  return {.video = take(tensors, "video_latents", {1, v.channels, v.frames, v.height, v.width}, path),
          .audio = take(tensors, "audio_latents", {1, a.channels, a.length, a.mel_bins}, path)};
}

}  // namespace sluice::pipeline
