// audio_vae/decode_*: normalized latents to log-mel spectrograms.
#include "models/ltx2/audio_vae/decoder.h"
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

}  // namespace

void add_audio_vae(Registry& registry) {
  registry.add("audio_vae", "decode_", run_audio_decode);
}

}  // namespace sluice::parity
