#include "pipeline/trace.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sluice::pipeline {

void Trace::begin(const ltx2::TextContext& context, const Settings& settings) {
  if (path_.empty()) return;
  const auto& v = settings.video;
  const auto& a = settings.audio;
  weights::TensorStream::Shapes shapes = {{"context.video", context.video_text.sizes().vec()},
                                          {"context.audio", context.audio_text.sizes().vec()}};
  for (std::int64_t k = 0; k < settings.schedule.steps(); ++k) {
    shapes.push_back({fmt::format("step_{}.video", k), {1, v.tokens(), v.channels}});
    shapes.push_back({fmt::format("step_{}.audio", k), {1, a.length, a.channels * a.mel_bins}});
  }
  shapes.push_back({"final.video", {1, v.channels, v.frames, v.height, v.width}});
  shapes.push_back({"final.audio", {1, a.channels, a.length, a.mel_bins}});
  file_.emplace(path_, std::move(shapes));
  file_->append("context.video", context.video_text);
  file_->append("context.audio", context.audio_text);
}

void Trace::step(std::int64_t k, const Latents& latents) {
  if (!file_) return;
  file_->append(fmt::format("step_{}.video", k), latents.video);
  file_->append(fmt::format("step_{}.audio", k), latents.audio);
}

void Trace::finish(const ClipLatents& latents) {
  if (!file_) return;
  file_->append("final.video", latents.video);
  file_->append("final.audio", latents.audio);
  file_->finish();
}

}  // namespace sluice::pipeline
