#include "pipeline/needs.h"

#include "models/ltx2/video_vae/decode_memory.h"
#include "pipeline/text_phase.h"

#include <sluice/error.h>
#include <sluice/read_options.h>

#include <fmt/format.h>

#include <algorithm>

namespace sluice::pipeline {
namespace {

using ltx2::ComponentKind;

constexpr Bytes kTile = MiB(64);         // widened weight tiles (kernels/linear.h)
constexpr Bytes kHeldStates = MiB(256);  // ltx2::FeatureLimits

Bytes bytes(std::int64_t elements, Bytes size) {
  return static_cast<Bytes>(elements) * size;
}

// Weights of another dtype than the computation's are widened a tile at a time into one reused block.
Bytes widened_tile(const weights::ComponentTable& table, at::ScalarType compute) {
  const Bytes size = compute == at::kBFloat16 ? 2 : 4;
  Bytes largest = 0;
  for (const auto& [name, tensor] : table.tensors) {
    const bool same = tensor.dtype == (compute == at::kBFloat16 ? Dtype::BF16 : Dtype::F32);
    if (!same && tensor.shape.size() >= 2) largest = std::max(largest, bytes(tensor.elements(), size));
  }
  return std::min(largest, kTile);
}

Bytes text_activations(const TextEncoder& encoder, const ltx2::ConnectorsConfig& connectors, Bytes size) {
  const auto& gemma = encoder.model->config;
  const std::int64_t tokens = kTextTokens;
  const Bytes layer = bytes(tokens * (6 * gemma.hidden_size + 2 * gemma.intermediate_size), size);
  const Bytes states = std::min(bytes(tokens * connectors.feature_columns(), size), kHeldStates);
  const Bytes connector = bytes(tokens * 10 * (connectors.video.width() + connectors.audio.width()), size);
  return std::max(layer + states, connector);
}

Bytes denoise_activations(const ltx2::TransformerConfig& config, const Settings& settings, Bytes size) {
  const std::int64_t video = settings.video.tokens() * config.video.width();
  const std::int64_t audio = settings.audio.length * config.audio.width();
  const int passes = sampling::needed_passes(settings.guidance).forward_passes();
  const Bytes text = bytes(kTextTokens * (config.video.text_dim + config.audio.text_dim), size);
  const Bytes tables =
      bytes(video + audio + (settings.video.tokens() + settings.audio.length) * config.cross_width, 4);
  // Of one block: the stream, its normed copy, q, k, v, the result and one more on the way; or the
  // feed-forward's pieces.
  const Bytes attention = bytes(7 * video, size);
  const Bytes feed_forward = bytes(3 * video, size) + kTile;
  return static_cast<Bytes>(passes) * (bytes(video + audio, size) + 2 * text) + tables +
         std::max(attention, feed_forward);
}

// The decoder's own count, and what the allocator and oneDNN hold beside it (30 to 130 MiB measured at 256 x
// 256).
Bytes decode_activations(const ltx2::VideoVaeConfig& config, const Settings& settings) {
  constexpr Bytes kBeside = MiB(96);
  const ltx2::LatentClip clip{
      .frames = settings.video.frames, .height = settings.video.height, .width = settings.video.width};
  return static_cast<Bytes>(ltx2::video_decode_memory(config, clip, {.compute = settings.dtype})) + kBeside;
}

Bytes sound_activations(const ltx2::VocoderConfig& config, std::int64_t mel_frames) {
  Bytes widest = 0;
  auto generator = [&](const ltx2::GeneratorConfig& g, std::int64_t frames) {
    std::int64_t samples = frames;
    for (std::size_t stage = 0; stage < g.upsample_factors.size(); ++stage) {
      samples *= g.upsample_factors[stage];
      widest = std::max(widest, bytes(samples * g.channels(stage + 1), 4));
    }
    return samples;
  };
  const std::int64_t low_rate = generator(config.vocoder, mel_frames);
  generator(config.bwe_generator, low_rate / config.inner_mel.hop_length);
  // Beside the antialiased activation at twice the rate, LibTorch lays out the taps of a long convolution
  // (measured at the demo model's widths: 39 times the widest tensor).
  return 40 * widest;
}

}  // namespace

std::vector<PhaseNeeds> phase_needs(const NeedsRequest& request) {
  const ModelSet& models = request.models;
  const Settings& settings = request.settings;
  const Bytes size = settings.dtype == at::kBFloat16 ? 2 : 4;
  auto weights = [&](ComponentKind kind) { return models.accounting.at(kind).bound_bytes; };
  // Read weights are kept, beside the buffers of the load.
  auto copied = [&](Bytes weights) { return request.mapped ? 0 : weights + kDefaultPool; };

  std::vector<PhaseNeeds> phases;
  if (request.encoder) {
    const Bytes total = request.encoder->accounting.bound_bytes + weights(ComponentKind::connectors);
    phases.push_back({"text", total,
                      text_activations(*request.encoder, models.connectors->config(), size) +
                          widened_tile(request.encoder->table, settings.dtype) + copied(total)});
  }
  phases.push_back({"denoise", weights(ComponentKind::transformer),
                    denoise_activations(models.transformer->config(), settings, size) +
                        widened_tile(models.table(ComponentKind::transformer), settings.dtype) +
                        copied(weights(ComponentKind::transformer))});
  if (!request.decode) return phases;
  if (request.sound) {
    const Bytes total = weights(ComponentKind::audio_vae) + weights(ComponentKind::vocoder);
    const std::int64_t mel_frames = models.audio_decoder->config().mel_frames(settings.audio.length);
    phases.push_back(
        {"decode sound", total, sound_activations(models.vocoder->config(), mel_frames) + copied(total)});
  }
  phases.push_back(
      {"decode video", weights(ComponentKind::vae),
       decode_activations(models.video_decoder->config(), settings) + copied(weights(ComponentKind::vae))});
  return phases;
}

void require_fit(const std::vector<PhaseNeeds>& phases, Bytes available) {
  for (const PhaseNeeds& phase : phases) {
    if (phase.anonymous <= available) continue;
    throw Error(ErrorKind::does_not_fit,
                fmt::format("not enough memory for the phase '{}': it needs {}, {} is available", phase.name,
                            format_bytes(phase.anonymous), format_bytes(available)),
                "ask for fewer or smaller frames; sluice plan shows what each phase needs");
  }
}

}  // namespace sluice::pipeline
