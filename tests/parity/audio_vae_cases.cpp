// audio_vae/decode_*: normalized latents to log-mel spectrograms; encode_*: and back.
#include "models/ltx2/audio_vae/decoder.h"
#include "models/ltx2/audio_vae/encoder.h"
#include "parity/registry.h"
#include "sampling/latents.h"
#include "support/fixture.h"

#include <ATen/ATen.h>

namespace sluice::parity {
namespace {

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

// The statistics' slots are the decoder's.
Results run_audio_encode(const Case& parity_case) {
  const auto config = ltx2::AudioVaeConfig::parse(parity_case.config(), parity_case.manifest().full_name());
  const ltx2::AudioEncoder encoder(config);
  const ltx2::AudioDecoder decoder(config);
  const auto source =
      test::open_weights(parity_case.weights(), {&encoder.encoder_group(), &decoder.statistics_group()},
                         ltx2::AudioEncoder::ignore_rules());
  Results results;
  const at::Tensor mean = encoder.encode(*source, parity_case.input("mel"), at::kFloat);
  results.add("mean", mean);
  const auto lease = source->acquire(decoder.statistics_group());
  results.add("latents_packed_normalized",
              ltx2::normalize_packed(decoder.statistics(), sampling::pack_audio(mean)));
  return results;
}

}  // namespace

void add_audio_vae(Registry& registry) {
  registry.add("audio_vae", "decode_", run_audio_decode);
  registry.add("audio_vae", "encode_", run_audio_encode);
}

}  // namespace sluice::parity
