#include "parity/registry.h"

#include "parity/file_cases.h"

namespace sluice::parity {

const Runner* Registry::find(const Manifest& manifest) const {
  const Entry* best = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.component != manifest.component || !manifest.name.starts_with(entry.prefix)) continue;
    if (!best || entry.prefix.size() > best->prefix.size()) best = &entry;
  }
  return best ? &best->runner : nullptr;
}

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
  add_transformer(registry);
  add_sampling(registry);
  add_autoencoders(registry);
  add_vocoder(registry);
  add_pipeline(registry);
  return registry;
}

}  // namespace sluice::parity
