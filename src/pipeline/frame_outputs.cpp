#include "pipeline/frame_outputs.h"

#include "media/pixels.h"

#include <span>
#include <utility>

namespace sluice::pipeline {

FrameOutputs::FrameOutputs(const Request& request, const Outputs& outputs,
                           const std::optional<Waveform>& sound, std::map<std::string, std::string> tags)
    : height_(static_cast<int>(request.height)),
      width_(static_cast<int>(request.width)),
      rgb_(static_cast<std::size_t>(3) * height_ * width_) {
  if (!outputs.frames_dir.empty())
    folder_.emplace(outputs.frames_dir, outputs.overwrite ? Existing::overwrite : Existing::refuse);
  if (outputs.video.empty()) return;
  media::Mp4Options options{.width = width_,
                            .height = height_,
                            .rate = request.fps,
                            .frames = request.frames,
                            .metadata = std::move(tags)};
  if (sound) options.sound = sound->wave();
  mp4_.emplace(outputs.video, options);
}

void FrameOutputs::add(std::int64_t index, const at::Tensor& frame) {
  const at::Tensor planes = frame.contiguous();
  const auto size = static_cast<std::size_t>(height_) * static_cast<std::size_t>(width_);
  const float* data = planes.const_data_ptr<float>();
  const media::PlanarFrame planar{
      .height = height_,
      .width = width_,
      .planes = {std::span(data, size), std::span(data + size, size), std::span(data + 2 * size, size)}};
  media::to_rgb8(planar, index, rgb_);
  const media::RgbFrame rgb{.height = height_, .width = width_, .pixels = rgb_};
  if (mp4_) mp4_->add_frame(rgb);
  if (folder_) folder_->add_frame(rgb);
}

void FrameOutputs::finish() {
  if (folder_) folder_->finish();
  if (mp4_) mp4_->finish();
}

}  // namespace sluice::pipeline
