#include "pipeline/trace.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sluice::pipeline {

void Trace::begin(const ltx2::TextContext& context, const Settings& settings, ltx2::Modalities modalities) {
  if (path_.empty()) return;
  const auto& v = settings.video;
  const auto& a = settings.audio;
  weights::TensorStream::Shapes shapes = {{"context.video", context.video_text.sizes().vec()},
                                          {"context.audio", context.audio_text.sizes().vec()}};
  std::int64_t k = 0;
  for (const StageSettings& stage : settings.stages) {
    first_step_.push_back(k);
    for (std::int64_t step = 0; step < stage.schedule.steps(); ++step, ++k) {
      if (has_video(modalities))
        shapes.push_back({fmt::format("step_{}.video", k), {1, stage.tokens(), v.channels}});
      if (has_audio(modalities))
        shapes.push_back({fmt::format("step_{}.audio", k), {1, a.length, a.channels * a.mel_bins}});
    }
  }
  if (has_video(modalities)) shapes.push_back({"final.video", {1, v.channels, v.frames, v.height, v.width}});
  if (has_audio(modalities)) shapes.push_back({"final.audio", {1, a.channels, a.length, a.mel_bins}});
  file_.emplace(path_, std::move(shapes));
  file_->append("context.video", context.video_text);
  file_->append("context.audio", context.audio_text);
}

void Trace::step(std::size_t stage, std::int64_t step, const Latents& latents) {
  if (!file_) return;
  const std::int64_t k = first_step_[stage] + step;
  if (latents.video.defined()) file_->append(fmt::format("step_{}.video", k), latents.video);
  if (latents.audio.defined()) file_->append(fmt::format("step_{}.audio", k), latents.audio);
}

void Trace::finish(const ClipLatents& latents) {
  if (!file_) return;
  if (latents.video.defined()) file_->append("final.video", latents.video);
  if (latents.audio.defined()) file_->append("final.audio", latents.audio);
  file_->finish();
}

}  // namespace sluice::pipeline
