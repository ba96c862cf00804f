#include "models/ltx2/vocoder/memory.h"

#include "models/ltx2/vocoder/activation.h"
#include "models/ltx2/vocoder/generator.h"
#include "models/ltx2/vocoder/pieces.h"

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kF32 = 4;
constexpr std::int64_t kBlock = 16;  // oneDNN fills channels up to vectors of so many
// What the memory pool touches for tensors that exist at once (published sizes, 0.5 s and 5 s: 1.15, 1.12).
constexpr double kGaps = 1.12;
// oneDNN compiles every convolution for every length it meets and keeps the programs: of a stage's
// convolutions and filters together, for one length (the same clips: 31 MiB, 62 MiB).
constexpr std::int64_t kPrograms = std::int64_t{1900} << 10;

std::int64_t filled(std::int64_t channels) {
  return (channels + kBlock - 1) / kBlock * kBlock;
}

struct ConvCount {
  std::int64_t in = 0, out = 0, kernel = 0;
  std::int64_t reach = 0;
  std::int64_t factor = 1;
};

std::int64_t weight_tile(const ConvCount& conv) {
  return std::min(conv.in * conv.out * conv.kernel * kF32, nn::kConvWeightTile);
}

// Beside its input and its result: a piece's result, both once more in oneDNN's order, and so a tile of
// weights.
std::int64_t conv_beside(const ConvCount& conv, std::int64_t samples) {
  const std::int64_t weights = conv.in * conv.out * conv.kernel;
  const std::int64_t at_once = conv_piece(1, conv.in, weights) + 2 * conv.reach;
  const std::int64_t piece = std::min(samples, at_once);
  const std::int64_t own = piece < samples ? piece * conv.factor * conv.out * kF32 : 0;
  const std::int64_t tile = weight_tile(conv);
  const std::int64_t tile_out = std::max<std::int64_t>(tile / (conv.in * conv.kernel * kF32), 1);
  const std::int64_t part = tile < weights * kF32 ? piece * conv.factor * tile_out * kF32 : 0;
  return own + part + piece * (filled(conv.in) + conv.factor * filled(std::min(conv.out, tile_out))) * kF32 +
         tile;
}

// Of a piece: it and its filtered form with border copies, at the higher rate, and what oneDNN reorders.
std::int64_t activation_beside(const AntialiasConfig& config, std::int64_t channels, std::int64_t samples) {
  const std::int64_t piece = std::min(samples, activation_piece(1, channels) + 4 * config.kernel_size);
  const std::int64_t raised = piece * config.ratio * kF32;
  return raised * (2 * channels + filled(channels)) + 2 * piece * channels * kF32;
}

std::int64_t generator_memory(const GeneratorConfig& config, std::int64_t frames) {
  std::int64_t samples = frames;
  std::int64_t before = config.hidden_channels * samples * kF32;
  constexpr std::int64_t kEnd = 7;
  std::int64_t peak = config.in_channels * samples * kF32 + before +
                      conv_beside({config.in_channels, config.hidden_channels, kEnd, kEnd}, samples);
  std::int64_t channels = config.hidden_channels;
  for (std::size_t stage = 0; stage < config.upsample_factors.size(); stage++) {
    const std::int64_t factor = config.upsample_factors[stage], kernel = config.upsample_kernel_sizes[stage];
    const std::int64_t width = config.channels(stage + 1);
    const std::int64_t tensor = samples * factor * width * kF32;
    peak = std::max(
        peak, before + tensor + conv_beside({channels, width, kernel, kernel / factor + 1, factor}, samples));
    samples *= factor;
    channels = width;
    std::int64_t beside = activation_beside(config.antialias, width, samples);
    for (std::size_t j = 0; j < config.resnet_kernel_sizes.size(); j++)
      for (std::int64_t dilation : config.resnet_dilations[j])
        beside = std::max(beside, conv_beside({width, width, config.resnet_kernel_sizes[j],
                                               (config.resnet_kernel_sizes[j] - 1) * dilation},
                                              samples));
    peak = std::max(peak, 5 * tensor + beside);  // stage, sum, block, and a layer's two ends
    before = tensor;
  }
  return peak;
}

// Of widened weights, in a block that only grows.
std::int64_t widest_tile(const GeneratorConfig& config) {
  std::int64_t widest = 0;
  for (std::size_t stage = 0; stage < config.upsample_factors.size(); stage++) {
    const std::int64_t width = config.channels(stage + 1);
    widest =
        std::max(widest, weight_tile({config.channels(stage), width, config.upsample_kernel_sizes[stage]}));
    for (std::int64_t kernel : config.resnet_kernel_sizes)
      widest = std::max(widest, weight_tile({width, width, kernel}));
  }
  return widest;
}

std::int64_t programs(const GeneratorConfig& config, std::int64_t frames) {
  constexpr std::int64_t kLengths = 3;  // of the first piece, of those in between, and of the last one
  std::int64_t bytes = 0, samples = frames;
  for (std::size_t stage = 0; stage < config.upsample_factors.size(); stage++) {
    samples *= config.upsample_factors[stage];
    const std::int64_t piece = activation_piece(1, config.channels(stage + 1));
    bytes += std::min((samples + piece - 1) / piece, kLengths) * kPrograms;
  }
  return bytes;
}

std::int64_t hops_of(const VocoderConfig& config, std::int64_t mel_frames) {
  const std::int64_t low = mel_frames * config.vocoder.total_factor();
  return (low + config.inner_mel.hop_length - 1) / config.inner_mel.hop_length;
}

}  // namespace

std::int64_t vocoder_tensors(const VocoderConfig& config, std::int64_t mel_frames) {
  const std::int64_t low = mel_frames * config.vocoder.total_factor();
  const std::int64_t hops = hops_of(config, mel_frames);
  const std::int64_t waves = config.vocoder.out_channels;
  const std::int64_t low_rate = waves * low * kF32;
  // Spectrum, its squares and the mel of all wave channels.
  const std::int64_t mel =
      waves * hops * (4 * config.inner_mel.frequencies() + 2 * config.inner_mel.num_mel_channels) * kF32;
  const std::int64_t kept = low_rate + waves * hops * config.inner_mel.num_mel_channels * kF32;
  const std::int64_t widened = std::max(widest_tile(config.vocoder), widest_tile(config.bwe_generator));
  return widened + std::max({generator_memory(config.vocoder, mel_frames), low_rate + mel,
                             kept + generator_memory(config.bwe_generator, hops)});
}

std::int64_t vocoder_memory(const VocoderConfig& config, std::int64_t mel_frames) {
  return static_cast<std::int64_t>(kGaps * static_cast<double>(vocoder_tensors(config, mel_frames))) +
         programs(config.vocoder, mel_frames) + programs(config.bwe_generator, hops_of(config, mel_frames));
}

}  // namespace sluice::ltx2
