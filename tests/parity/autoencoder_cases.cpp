// video_vae/decode_f*, audio_vae/decode_*: normalized latents to frames and log-mel spectrograms.
#include "models/ltx2/audio_vae/decoder.h"
#include "models/ltx2/video_vae/decode_stream.h"
#include "parity/registry.h"
#include "sampling/latents.h"
#include "support/fixture.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sluice::parity {
namespace {

// `causal` of the reference's decode() overrides the config; null leaves it alone.
void apply_causal(ltx2::VideoVaeConfig& config, const Case& parity_case) {
  config.decoder_causal = parity_case.param_or("causal", config.decoder_causal);
}

at::Tensor decode_in_pieces(const ltx2::VideoDecoder& decoder, weights::WeightSource& source,
                            const at::Tensor& latents) {
  std::vector<at::Tensor> frames;
  ltx2::VideoDecodeStream stream(
      decoder, source, [&](const at::Tensor& piece) { frames.push_back(piece.clone()); }, {.frames = 1});
  const std::int64_t count = latents.size(2);
  for (std::int64_t i = 0; i < count; ++i)
    stream.push(latents.narrow(2, i, 1), i + 1 == count ? ltx2::Last::yes : ltx2::Last::no);
  return at::cat(frames, 2);
}

Results run_video_decode(const Case& parity_case) {
  ltx2::VideoVaeConfig config =
      ltx2::VideoVaeConfig::parse(parity_case.config(), parity_case.manifest().full_name());
  apply_causal(config, parity_case);
  const ltx2::VideoDecoder decoder(config);
  const auto source =
      test::open_weights(parity_case.weights(), decoder.groups(), ltx2::VideoDecoder::ignore_rules());
  at::Tensor latents;
  {
    const auto lease = source->acquire(decoder.statistics_group());
    latents = ltx2::denormalize(decoder.statistics(), config.scaling_factor,
                                parity_case.input("latents_normalized"));
  }
  Results results;
  results.add("latents", latents);
  results.add("sample", ltx2::decode_video(decoder, *source, latents, ltx2::PieceLimit::none()));
  const auto streamed =
      test::all_close(decode_in_pieces(decoder, *source, latents), parity_case.wanted("sample"),
                      parity_case.manifest().outputs.at("sample").tolerance);
  results.claim("streamed frame by frame", static_cast<bool>(streamed), streamed.message());
  return results;
}

Results run_audio_decode(const Case& parity_case) {
  const ltx2::AudioDecoder decoder(
      ltx2::AudioVaeConfig::parse(parity_case.config(), parity_case.manifest().full_name()));
  const auto source =
      test::open_weights(parity_case.weights(), decoder.groups(), ltx2::AudioDecoder::ignore_rules());
  at::Tensor latents;
  {
    const auto lease = source->acquire(decoder.statistics_group());
    const at::Tensor packed =
        ltx2::denormalize_packed(decoder.statistics(), parity_case.input("latents_packed_normalized"));
    const auto& config = decoder.config();
    latents = sampling::unpack_audio(
        packed,
        {.channels = config.latent_channels, .length = packed.size(1), .mel_bins = config.latent_bins()});
  }
  Results results;
  results.add("latents", latents);
  results.add("mel", decoder.decode(*source, latents));
  return results;
}

}  // namespace

void add_autoencoders(Registry& registry) {
  registry.add("video_vae", "decode_f", run_video_decode);
  registry.add("audio_vae", "decode_", run_audio_decode);
}

}  // namespace sluice::parity
