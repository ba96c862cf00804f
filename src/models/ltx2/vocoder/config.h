#pragma once
// The configuration of the vocoder with bandwidth extension, under the names diffusers gives its keys.

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::ltx2 {

enum class FinalActivation { none, clamp, tanh };  // clamp: to [-1, 1]

struct AntialiasConfig {
  std::int64_t ratio = 2;
  std::int64_t kernel_size = 12;
};

// One of the two networks from mel frames to a wave.
struct GeneratorConfig {
  std::int64_t in_channels = 0;      // wave channels · mel bins
  std::int64_t hidden_channels = 0;  // halved by every upsampling stage
  std::int64_t out_channels = 0;
  std::vector<std::int64_t> upsample_kernel_sizes;  // one a stage
  std::vector<std::int64_t> upsample_factors;
  std::vector<std::int64_t> resnet_kernel_sizes;  // one a parallel residual block
  std::vector<std::vector<std::int64_t>> resnet_dilations;
  AntialiasConfig antialias;
  FinalActivation final_activation = FinalActivation::none;
  bool final_bias = false;

  std::int64_t total_factor() const;               // samples a mel frame
  std::int64_t channels(std::size_t stage) const;  // after that many stages
  std::int64_t mel_bins() const { return in_channels / out_channels; }
};

// The mel spectrogram between the two generators.
struct InnerMelConfig {
  std::int64_t filter_length = 0;
  std::int64_t hop_length = 0;
  std::int64_t window_length = 0;
  std::int64_t num_mel_channels = 0;

  std::int64_t frequencies() const { return filter_length / 2 + 1; }
};

struct VocoderConfig {
  GeneratorConfig vocoder;        // mel to wave at input_sampling_rate
  GeneratorConfig bwe_generator;  // inner mel to what is added at output_sampling_rate
  InnerMelConfig inner_mel;
  std::int64_t input_sampling_rate = 0;
  std::int64_t output_sampling_rate = 0;

  std::int64_t resample_ratio() const { return output_sampling_rate / input_sampling_rate; }

  // Keys as LTX2VocoderWithBWE of diffusers 0.42.1, all required.  Refused by name: a vocoder without
  // bandwidth extension (2.0), other activations than antialiased snakebeta, rates that are no multiple.
  // final_act_fn (null, "clamp", "tanh") is the checkpoint's word.  `where` names the source in errors.
  static VocoderConfig parse(const nlohmann::json& config, const std::string& where = "vocoder");
};

}  // namespace sluice::ltx2
