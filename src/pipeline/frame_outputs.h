#pragma once
// Where frames go: an mp4, a folder of PNGs, or both.  One thread.

#include "media/mp4_writer.h"
#include "media/png_writer.h"
#include "pipeline/decode_phases.h"
#include "pipeline/prepared_run.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice::pipeline {

class FrameOutputs {
 public:
  // `sound` is looked at here only.  Error(io) where an output cannot be written.
  FrameOutputs(const Request& request, const Outputs& outputs, const std::optional<Waveform>& sound,
               std::map<std::string, std::string> tags);

  void add(std::int64_t index, const at::Tensor& frame);  // f32 [3, height, width]
  void finish();                                          // they get their names

 private:
  int height_;
  int width_;
  std::vector<std::uint8_t> rgb_;
  std::optional<media::Mp4Writer> mp4_;
  std::optional<media::PngFolderWriter> folder_;
};

}  // namespace sluice::pipeline
