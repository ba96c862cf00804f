#pragma once
// Flags of what a request gives beside words: pictures, videos, sound, adapters, a second stage.

#include <sluice/sluice.h>

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace sluice::compute {

class GivenFlags {
 public:
  // In two parts, so that a command's help has other groups between them: files and stages; what is sampled.
  void add_files_to(CLI::App& command);
  void add_modes_to(CLI::App& command);

  // Parses; what was not given stays as it is.  Error(usage) names flag and value.
  void apply(Request& request) const;

 private:
  void apply_stages(Request& request) const;
  bool given(const char* name) const { return command_->count(name) > 0; }

  CLI::App* command_ = nullptr;
  std::vector<std::string> images_, videos_, references_, adapters_, stage_2_adapters_;
  std::string fit_ = "crop", sampler_ = "euler", retake_;
  std::filesystem::path audio_;
  std::int64_t frames_from_ = 0, count_ = 1;
  int image_crf_ = 0;
  double reference_attention_ = 1.0;
  bool two_stage_ = false, audio_only_ = false, video_only_ = false;
  TwoStageRequest stages_;
};

// "first.png@8:0.5": file, frame, strength.  A file of that whole name is taken as it is.
FrameCondition parse_frame_condition(std::string_view flag, const std::string& text);
// "style.safetensors:0.8": file, strength.  A file of that whole name is taken as it is.
Adapter parse_adapter(std::string_view flag, const std::string& text);
// "1.5:3" in seconds
SecondRange parse_second_range(std::string_view flag, const std::string& text);

}  // namespace sluice::compute
