#include "pipeline/work.h"

namespace sluice::pipeline {
namespace {

double product(std::initializer_list<std::int64_t> factors) {
  double result = 1;
  for (std::int64_t factor : factors) result *= static_cast<double>(factor);
  return result;
}

// The two products of an attention.
double attended(std::int64_t tokens, std::int64_t keys, std::int64_t width) {
  return 2 * product({tokens, keys, width});
}

Work generator_work(const ltx2::GeneratorConfig& config, std::int64_t frames) {
  Work work;
  work.conv1d += 7 * product({frames, config.in_channels, config.hidden_channels});
  std::int64_t samples = frames;
  for (std::size_t stage = 0; stage < config.upsample_factors.size(); ++stage) {
    const std::int64_t before = config.channels(stage), channels = config.channels(stage + 1);
    work.conv1d += product({samples, before, channels, config.upsample_kernel_sizes[stage]});
    samples *= config.upsample_factors[stage];
    for (std::size_t r = 0; r < config.resnet_kernel_sizes.size(); ++r) {
      // Two convolutions a dilation, each behind an activation at twice the rate with a filter on both sides.
      const auto pairs = static_cast<std::int64_t>(config.resnet_dilations[r].size());
      work.conv1d += product({2, pairs, samples, channels, channels, config.resnet_kernel_sizes[r]});
      work.elements += product({2, pairs, samples, channels, 4 * config.antialias.kernel_size});
    }
  }
  return work;
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  for (const auto& [rows, elements] : other.linear) linear[rows] += elements;
  attention += other.attention;
  conv3d += other.conv3d;
  conv1d += other.conv1d;
  elements += other.elements;
  return *this;
}

Work operator*(double times, const Work& work) {
  Work scaled = work;
  for (auto& [rows, elements] : scaled.linear) elements *= times;
  scaled.attention *= times;
  scaled.conv3d *= times;
  scaled.conv1d *= times;
  scaled.elements *= times;
  return scaled;
}

Work block_work(const ltx2::TransformerConfig& config, const StreamTokens& tokens) {
  const std::int64_t video = config.video.width(), audio = config.audio.width(), cross = audio;
  Work work;
  auto linear = [&](std::int64_t rows, std::int64_t in, std::int64_t out, std::int64_t count = 1) {
    work.linear[rows] += product({in, out, count});
  };
  auto stream = [&](const ltx2::StreamConfig& own, std::int64_t rows) {
    if (rows == 0) return;  // the stream is left out
    const std::int64_t width = own.width();
    linear(rows, width, width, 4 + 2 + 8);  // self-attention, q and out of text attention, feed-forward
    linear(tokens.text, own.text_dim, width, 2);
    work.attention += attended(rows, rows, width) + attended(rows, tokens.text, width);
    // Norms, gates, rotations, residuals, GELU: the stream is passed over about forty times.
    work.elements += product({40, rows, width});
  };
  stream(config.video, tokens.video);
  stream(config.audio, tokens.audio);
  if (tokens.video == 0 || tokens.audio == 0) return work;
  linear(tokens.video, video, cross, 2);  // q and out, audio to video
  linear(tokens.audio, audio, cross, 2);  // its k and v
  linear(tokens.audio, audio, cross, 2);  // q and out, video to audio
  linear(tokens.video, video, cross, 2);
  work.attention += 2 * attended(tokens.video, tokens.audio, cross);
  return work;
}

Work gemma_layer_work(const ltx2::GemmaConfig& config, std::int64_t tokens) {
  const std::int64_t q = config.num_attention_heads * config.head_dim;
  const std::int64_t kv = config.num_key_value_heads * config.head_dim;
  Work work;
  work.linear[tokens] += product({config.hidden_size, 2 * q + 2 * kv + 3 * config.intermediate_size});
  work.attention += attended(tokens, tokens, q);
  work.elements += product({40, tokens, config.hidden_size});
  return work;
}

Work connectors_work(const ltx2::ConnectorsConfig& config, std::int64_t tokens, std::int64_t positions) {
  Work work;
  for (const ltx2::ConnectorConfig* connector : {&config.video, &config.audio}) {
    const std::int64_t width = connector->width();
    if (config.per_modality_projections || connector == &config.video)
      work.linear[tokens] += product({config.feature_columns(), width});
    work.linear[positions] += product({connector->num_layers, width, width, 4 + 8});
    work.attention += static_cast<double>(connector->num_layers) * attended(positions, positions, width);
    work.elements += product({40, connector->num_layers, positions, width});
  }
  return work;
}

Work video_decode_work(const ltx2::VideoVaeConfig& config, std::int64_t frames, std::int64_t height,
                       std::int64_t width) {
  Work work;
  auto conv = [&](std::int64_t in, std::int64_t out, std::int64_t count = 1) {
    work.conv3d += 27 * product({count, in, out, frames, height, width});
    work.elements += 8 * product({count, in, frames, height, width});  // norm, SiLU, padding, sum
  };
  conv(config.latent_channels, config.mid_channels);
  conv(config.mid_channels, config.mid_channels, 2 * config.mid_layers);
  for (const ltx2::UpBlockConfig& block : config.up_blocks) {
    conv(block.in_channels, block.channels * block.shuffle());
    frames = block.stride_t * frames - (block.stride_t - 1);
    height *= block.stride_h;
    width *= block.stride_w;
    conv(block.channels, block.channels, 2 * block.layers);
  }
  conv(config.last_channels(), config.out_channels * config.patch_size * config.patch_size);
  return work;
}

Work sound_decode_work(const ltx2::AudioVaeConfig& autoencoder, const ltx2::VocoderConfig& vocoder,
                       std::int64_t latents) {
  const std::int64_t frames = autoencoder.mel_frames(latents);
  Work work = generator_work(vocoder.vocoder, frames);
  const std::int64_t samples = frames * vocoder.vocoder.total_factor();
  work += generator_work(vocoder.bwe_generator, samples / vocoder.inner_mel.hop_length);
  // The autoencoder is two-dimensional; its convolutions run at the rate of the others.
  std::int64_t length = latents, bins = autoencoder.latent_bins();
  for (auto mult = autoencoder.ch_mult.rbegin(); mult != autoencoder.ch_mult.rend(); ++mult) {
    const std::int64_t channels = autoencoder.base_channels * *mult;
    work.conv3d += 9 * product({2 * (autoencoder.num_res_blocks + 1), channels, channels, length, bins});
    length *= 2;
    bins *= 2;
  }
  return work;
}

}  // namespace sluice::pipeline
