// The table of all families, see registry.h.
#include "parity/file_cases.h"
#include "parity/registry.h"

namespace sluice::parity {

void add_files(Registry& registry) {
  registry.add("safetensors", "reading", run_safetensors_reading);
  registry.add("checkpoint", "single_file", run_single_file);
}

Registry every_runner() {
  Registry registry;
  add_files(registry);
  add_tokenizer(registry);
  add_text(registry);
  add_layers(registry);
  add_quantized(registry);
  add_transformer(registry);
  add_sampling(registry);
  add_samplers(registry);
  add_video_vae(registry);
  add_audio_vae(registry);
  add_mel_frontend(registry);
  add_vocoder(registry);
  add_upsampler(registry);
  add_pipeline(registry);
  return registry;
}

}  // namespace sluice::parity
