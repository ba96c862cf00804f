// latent_upsampler/*: denormalised latents to larger ones.
#include "models/ltx2/upsampler/upsampler.h"
#include "parity/registry.h"
#include "support/fixture.h"

namespace sluice::parity {
namespace {

Results run_upsampler(const Case& parity_case) {
  const auto config = ltx2::UpsamplerConfig::parse(parity_case.config(), parity_case.manifest().full_name());
  const ltx2::LatentUpsampler upsampler(config);
  const auto source = test::open_weights(parity_case.weights(), upsampler.groups(),
                                         ltx2::LatentUpsampler::ignore_rules(config));
  const at::Tensor& latents = parity_case.input("latents");
  const at::Tensor upsampled = upsampler.forward(*source, latents, at::kFloat);
  const ltx2::LatentSize size = upsampler.upsampled({latents.size(2), latents.size(3), latents.size(4)});
  Results results;
  results.add("upsampled", upsampled);
  results.claim("size foretold",
                size == ltx2::LatentSize{upsampled.size(2), upsampled.size(3), upsampled.size(4)},
                "upsampled() says another size");
  return results;
}

}  // namespace

void add_upsampler(Registry& registry) {
  registry.add("latent_upsampler", "", run_upsampler);
}

}  // namespace sluice::parity
