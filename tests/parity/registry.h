#pragma once
// Which function runs which cases.  Each family of components adds its own, in a file of its own.

#include "parity/case.h"
#include "parity/results.h"

#include <functional>
#include <string>
#include <vector>

namespace sluice::parity {

using Runner = std::function<Results(const Case&)>;

class Registry {
 public:
  // Runs the cases of `component` whose name begins with `prefix` ("" for all of them).
  void add(std::string component, std::string prefix, Runner runner) {
    entries_.push_back({std::move(component), std::move(prefix), std::move(runner)});
  }

  // nullptr: not covered.  Of several, the one with the longest prefix.
  const Runner* find(const Manifest& manifest) const;

 private:
  struct Entry {
    std::string component;
    std::string prefix;
    Runner runner;
  };
  std::vector<Entry> entries_;
};

void add_files(Registry& registry);      // safetensors, checkpoint
void add_tokenizer(Registry& registry);  // tokenizer
void add_text(Registry& registry);       // gemma3, connectors
void add_layers(Registry& registry);     // rope, adaln, attention
void add_quantized(Registry& registry);  // quant_fp8, quant_nf4
void add_transformer(Registry& registry);
void add_sampling(Registry& registry);
void add_samplers(Registry& registry);  // ltx25/ancestral_*, sampling/res_2s_*, latent_filters
void add_video_vae(Registry& registry);
void add_audio_vae(Registry& registry);  // both halves
void add_mel_frontend(Registry& registry);
void add_vocoder(Registry& registry);
void add_upsampler(Registry& registry);  // latent_upsampler
void add_pipeline(Registry& registry);

Registry every_runner();

}  // namespace sluice::parity
