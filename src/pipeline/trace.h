#pragma once
// The trace of a run: context.video, context.audio, step_<k>.video and step_<k>.audio (packed and normalized,
// after step k, tokens of given frames behind the clip's; the steps of a second stage are counted on),
// final.video and final.audio (unpacked and denormalized); f32.  Written as it comes.

#include "pipeline/decode_phases.h"
#include "pipeline/settings.h"
#include "weights/tensor_file.h"

#include <filesystem>
#include <optional>
#include <vector>

namespace sluice::pipeline {

class Trace {
 public:
  // An empty path traces nothing.
  explicit Trace(std::filesystem::path path) : path_(std::move(path)) {}

  void begin(const ltx2::TextContext& context, const Settings& settings, ltx2::Modalities modalities);
  void step(std::size_t stage, std::int64_t k, const Latents& latents);
  void finish(const ClipLatents& latents);

 private:
  std::filesystem::path path_;
  std::vector<std::int64_t> first_step_;  // of each stage
  std::optional<weights::TensorStream> file_;
};

}  // namespace sluice::pipeline
