#include "models/ltx2/vocoder/config.h"

#include "nn/config_reader.h"

#include <functional>
#include <numeric>

namespace sluice::ltx2 {
namespace {

using Numbers = std::vector<std::int64_t>;

Error bad_config(const nn::ConfigReader& read, const std::string& what) {
  return Error(ErrorKind::bad_input, fmt::format("{}: {}", read.where(), what), "use the published config");
}

FinalActivation final_activation(const nn::ConfigReader& read, const std::string& key) {
  const nlohmann::json& value = read.at(key);
  if (value.is_null()) return FinalActivation::none;
  if (value == "clamp") return FinalActivation::clamp;
  if (value == "tanh") return FinalActivation::tanh;
  throw read.unsupported(key);
}

void check_generator(const nn::ConfigReader& read, const std::string& prefix, const GeneratorConfig& config) {
  const std::size_t stages = config.upsample_factors.size();
  if (stages == 0 || config.upsample_kernel_sizes.size() != stages)
    throw bad_config(
        read,
        fmt::format("'{0}upsample_factors' and '{0}upsample_kernel_sizes' need one number a stage", prefix));
  if (config.resnet_kernel_sizes.empty() ||
      config.resnet_dilations.size() != config.resnet_kernel_sizes.size())
    throw bad_config(
        read, fmt::format("'{0}resnet_kernel_sizes' and '{0}resnet_dilations' need one entry a residual "
                          "block",
                          prefix));
  for (const Numbers& dilations : config.resnet_dilations)
    if (dilations.empty()) throw read.unsupported(prefix + "resnet_dilations");
  if (config.antialias.ratio < 1 || config.antialias.kernel_size < config.antialias.ratio)
    throw read.unsupported(prefix + "antialias_kernel_size");
  for (std::int64_t kernel : config.resnet_kernel_sizes)
    if (kernel % 2 == 0) throw read.unsupported(prefix + "resnet_kernel_sizes");
  if (config.out_channels < 1 || config.in_channels % config.out_channels)
    throw bad_config(read, fmt::format("'{}in_channels' {} is no multiple of {} wave channels", prefix,
                                       config.in_channels, config.out_channels));
  if (config.channels(stages) < 1)
    throw bad_config(read, fmt::format("'{}hidden_channels' {} cannot be halved {} times", prefix,
                                       config.hidden_channels, stages));
}

GeneratorConfig parse_generator(const nn::ConfigReader& read, const std::string& prefix) {
  if (read.required<std::string>(prefix + "act_fn") != "snakebeta") throw read.unsupported(prefix + "act_fn");
  if (!read.required<bool>(prefix + "antialias")) throw read.unsupported(prefix + "antialias");
  GeneratorConfig config;
  config.in_channels = read.required<std::int64_t>(prefix + "in_channels");
  config.hidden_channels = read.required<std::int64_t>(prefix + "hidden_channels");
  config.out_channels = read.required<std::int64_t>(prefix + "out_channels");
  config.upsample_kernel_sizes = read.required<Numbers>(prefix + "upsample_kernel_sizes");
  config.upsample_factors = read.required<Numbers>(prefix + "upsample_factors");
  config.resnet_kernel_sizes = read.required<Numbers>(prefix + "resnet_kernel_sizes");
  config.resnet_dilations = read.required<std::vector<Numbers>>(prefix + "resnet_dilations");
  config.antialias.ratio = read.required<std::int64_t>(prefix + "antialias_ratio");
  config.antialias.kernel_size = read.required<std::int64_t>(prefix + "antialias_kernel_size");
  config.final_activation = final_activation(read, prefix + "final_act_fn");
  config.final_bias = read.required<bool>(prefix + "final_bias");
  check_generator(read, prefix, config);
  return config;
}

InnerMelConfig parse_inner_mel(const nn::ConfigReader& read) {
  InnerMelConfig config;
  config.filter_length = read.required<std::int64_t>("filter_length");
  config.hop_length = read.required<std::int64_t>("hop_length");
  config.window_length = read.required<std::int64_t>("window_length");
  config.num_mel_channels = read.required<std::int64_t>("num_mel_channels");
  return config;
}

// The two generators, the mel between them and the skip beside them must give waves of one length.
void check_joints(const nn::ConfigReader& read, const VocoderConfig& config) {
  if (config.input_sampling_rate < 1 || config.output_sampling_rate % config.input_sampling_rate)
    throw read.unsupported("output_sampling_rate");
  const std::int64_t channels = config.vocoder.out_channels;
  if (config.bwe_generator.out_channels != channels ||
      config.bwe_generator.in_channels != channels * config.inner_mel.num_mel_channels)
    throw bad_config(
        read, fmt::format("the bandwidth extension takes {} channels and makes {}, the wave has {} with "
                          "{} mel bins",
                          config.bwe_generator.in_channels, config.bwe_generator.out_channels, channels,
                          config.inner_mel.num_mel_channels));
  if (config.inner_mel.hop_length < 1 ||
      config.bwe_generator.total_factor() != config.inner_mel.hop_length * config.resample_ratio())
    throw bad_config(
        read, fmt::format("the bandwidth extension makes {} samples a frame, hop {} and rates {} to {} "
                          "need {}",
                          config.bwe_generator.total_factor(), config.inner_mel.hop_length,
                          config.input_sampling_rate, config.output_sampling_rate,
                          config.inner_mel.hop_length * config.resample_ratio()));
}

}  // namespace

std::int64_t GeneratorConfig::total_factor() const {
  return std::accumulate(upsample_factors.begin(), upsample_factors.end(), std::int64_t{1},
                         std::multiplies<>{});
}

std::int64_t GeneratorConfig::channels(std::size_t stage) const {
  return hidden_channels >> stage;
}

VocoderConfig VocoderConfig::parse(const nlohmann::json& json, const std::string& where) {
  nn::ConfigReader read(json, where);
  if (!read.has("bwe_in_channels"))
    throw Error(
        ErrorKind::bad_input,
        fmt::format(
            "{}: the config has no 'bwe_in_channels': a vocoder without bandwidth extension (LTX-2.0) "
            "is not implemented",
            where),
        "use a checkpoint of LTX-2.3");
  VocoderConfig config;
  config.vocoder = parse_generator(read, "");
  config.bwe_generator = parse_generator(read, "bwe_");
  config.inner_mel = parse_inner_mel(read);
  config.input_sampling_rate = read.required<std::int64_t>("input_sampling_rate");
  config.output_sampling_rate = read.required<std::int64_t>("output_sampling_rate");
  check_joints(read, config);
  return config;
}

}  // namespace sluice::ltx2
