#include "pipeline/stage_conditions.h"

#include "sampling/latents.h"

#include <ATen/ATen.h>

namespace sluice::pipeline {
namespace {

at::Tensor full(std::int64_t tokens, std::int64_t channels, double value) {
  return at::full({1, tokens, channels}, value, at::kFloat);
}

// Tokens of one group of given frames.
struct Tokens {
  const PlannedFrames* frames = nullptr;
  at::Tensor latents;  // [1, n, C]
  at::Tensor coordinates;
};

ltx2::VideoGrid grid_of(const at::Tensor& latents) {
  return {.frames = latents.size(2), .height = latents.size(3), .width = latents.size(4)};
}

Tokens tokens_beside(const LayoutInputs& inputs, const PlannedFrames& frames, const at::Tensor& latents) {
  const ltx2::VideoGrid grid = grid_of(latents);
  return {.frames = &frames,
          .latents = sampling::pack_video(latents),
          .coordinates =
              frames.source == FrameSource::reference
                  ? ltx2::reference_coordinates(inputs.transformer, grid, frames.downscale, inputs.fps)
                  : ltx2::keyframe_coordinates(inputs.transformer, grid,
                                               {.pixel_frame = frames.frame, .pixel_frames = frames.count},
                                               inputs.fps)};
}

// The clip and references see each other as far as `strength`; a reference sees itself, and neither keyframes
// nor other references.  Source: _build_video_self_attention_mask of diffusers' LTX2InContextPipeline.
at::Tensor reference_mask(std::int64_t grid, const std::vector<Tokens>& beside, double strength) {
  std::int64_t all = grid, prefix = grid;
  for (const Tokens& group : beside) {
    all += group.latents.size(1);
    if (group.frames->source != FrameSource::reference) prefix += group.latents.size(1);
  }
  at::Tensor mask = at::zeros({1, all, all}, at::kFloat);
  mask.narrow(1, 0, prefix).narrow(2, 0, prefix).fill_(1);
  std::int64_t offset = prefix;
  for (const Tokens& group : beside) {
    if (group.frames->source != FrameSource::reference) continue;
    const std::int64_t n = group.latents.size(1);
    mask.narrow(1, 0, grid).narrow(2, offset, n).fill_(strength);
    mask.narrow(1, offset, n).narrow(2, 0, grid).fill_(strength);
    mask.narrow(1, offset, n).narrow(2, offset, n).fill_(1);
    offset += n;
  }
  return mask;
}

void lay_out_frames(const LayoutInputs& inputs, const GivenLatents& given, StageConditions& conditions) {
  const auto& shape = inputs.stage.video;
  std::vector<at::Tensor> masks = {full(shape.tokens(), 1, 0)},
                          cleans = {full(shape.tokens(), shape.channels, 0)};
  std::vector<at::Tensor> coordinates;
  std::vector<Tokens> beside;
  bool references = false;
  for (std::size_t i = 0; i < inputs.plan.frames.size(); ++i) {
    const PlannedFrames& frames = inputs.plan.frames[i];
    if (!frames.beside()) {
      const at::Tensor tokens = sampling::pack_video(given.frames[i]);
      masks.front().narrow(1, 0, tokens.size(1)).fill_(frames.strength);
      cleans.front().narrow(1, 0, tokens.size(1)).copy_(tokens);
      continue;
    }
    references = references || frames.source == FrameSource::reference;
    const Tokens& group = beside.emplace_back(tokens_beside(inputs, frames, given.frames[i]));
    masks.push_back(full(group.latents.size(1), 1, frames.strength));
    cleans.push_back(group.latents);
    coordinates.push_back(group.coordinates);
  }
  if (const auto& anew = inputs.plan.retaken_video) {
    const std::int64_t frame = shape.height * shape.width;
    masks.front().narrow(1, anew->begin * frame, (anew->end - anew->begin) * frame).zero_();
  }
  conditions.video = {.mask = at::cat(masks, 1), .clean = at::cat(cleans, 1)};
  if (!coordinates.empty()) conditions.coordinates_beside = at::cat(coordinates, 2);
  if (references && inputs.reference_attention < 1)
    conditions.video_self_mask = reference_mask(shape.tokens(), beside, inputs.reference_attention);
}

}  // namespace

StageConditions lay_out(const LayoutInputs& inputs, const GivenLatents& given) {
  StageConditions conditions;
  if (!given.frames.empty()) lay_out_frames(inputs, given, conditions);
  if (!given.audio.defined()) return conditions;
  conditions.audio = {.mask = full(inputs.audio.length, 1, 1), .clean = given.audio};
  conditions.frozen_audio = inputs.plan.sound;
  if (const auto& anew = inputs.plan.retaken_audio)
    conditions.audio.mask.narrow(1, anew->begin, anew->end - anew->begin).zero_();
  return conditions;
}

Latents stage_start(const StageConditions& conditions, const Latents& noise, const Latents& clean,
                    double level) {
  // Given tokens stand over what the earlier stage made of them; their share of noise is the mask's.
  auto start = [&](const at::Tensor& noisy, const at::Tensor& made, const sampling::Conditioning& given) {
    if (!noisy.defined() || (!made.defined() && !given.defined())) return noisy;
    at::Tensor from = made.defined() ? made : given.clean;
    if (made.defined() && given.defined()) {
      const std::int64_t beside = given.clean.size(1) - made.size(1);
      from = at::where(given.mask > 0, given.clean, at::constant_pad_nd(made, {0, 0, 0, beside}));
    }
    return sampling::noised_start(from, noisy, given.mask, level);
  };
  return {.video = start(noise.video, clean.video, conditions.video),
          .audio = conditions.frozen_audio ? conditions.audio.clean
                                           : start(noise.audio, clean.audio, conditions.audio)};
}

ltx2::Positions stage_positions(const LayoutInputs& inputs, const StageConditions& conditions,
                                ltx2::Modalities modalities) {
  at::Tensor video, audio;
  if (has_video(modalities)) {
    const auto& shape = inputs.stage.video;
    video = ltx2::video_coordinates(inputs.transformer,
                                    {.frames = shape.frames, .height = shape.height, .width = shape.width},
                                    inputs.fps);
    if (conditions.coordinates_beside.defined()) video = at::cat({video, conditions.coordinates_beside}, 2);
  }
  if (has_audio(modalities)) audio = ltx2::audio_coordinates(inputs.transformer, inputs.audio.length);
  return ltx2::make_positions(inputs.transformer, video, audio);
}

}  // namespace sluice::pipeline
