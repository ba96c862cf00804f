// Memory of decoding sound, at the sizes of a checkpoint: planned beside measured, as JSON.  DIR is a
// diffusers folder with audio_vae and vocoder.
#include "base/allocator.h"
#include "base/peak_memory.h"
#include "base/system_memory.h"
#include "kernels/memory_pool.h"
#include "kernels/scratch.h"
#include "models/ltx2/audio_vae/decoder.h"
#include "models/ltx2/audio_vae/memory.h"
#include "models/ltx2/vocoder/memory.h"
#include "models/ltx2/vocoder/vocoder.h"
#include "nn/json_file.h"
#include "weights/weight_source.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

namespace {

using namespace sluice;
namespace fs = std::filesystem;

std::unique_ptr<weights::WeightSource> open(const fs::path& folder) {
  const Checkpoint checkpoint = Checkpoint::open(folder);
  return weights::make_weight_source(weights::whole_checkpoint(folder.filename().string(), checkpoint),
                                     std::make_shared<bytes::MappedCheckpoint>(checkpoint));
}

template <typename Work>
at::Tensor measured(const char* what, std::int64_t planned, Work work) {
  give_back_freed_memory();
  kernels::begin_pool_phase(0);
  const Bytes before = anonymous_memory();
  const auto begin = std::chrono::steady_clock::now();
  PeakMemory peak;
  at::Tensor result = work();
  const Bytes most = peak.finish();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  kernels::release_scratch();
  fmt::print(
      "{{\"what\": \"{}\", \"planned\": {}, \"measured\": {}, \"tensors\": {}, \"pool\": {}, \"seconds\": "
      "{:.2f}}}\n",
      what, planned, most - std::min(before, most), kernels::pool_figures().peak_live,
      kernels::pool_figures().extent, elapsed.count());
  return result;
}

void run(const fs::path& model, std::int64_t latents) {
  c10::InferenceMode no_graph;
  const ltx2::AudioDecoder decoder(
      ltx2::AudioVaeConfig::parse(nn::read_json_file(model / "audio_vae" / "config.json")));
  const ltx2::Vocoder vocoder(
      ltx2::VocoderConfig::parse(nn::read_json_file(model / "vocoder" / "config.json")));
  const auto audio_source = open(model / "audio_vae"), vocoder_source = open(model / "vocoder");
  at::mm(at::ones({64, 64}), at::ones({64, 64}));  // threads and their memory, before anything is measured
  const at::Tensor x =
      at::randn({1, decoder.config().latent_channels, latents, decoder.config().latent_bins()});
  const at::Tensor mel =
      measured("audio vae", ltx2::audio_decode_memory(decoder.config(), latents, at::kFloat),
               [&] { return decoder.decode(*audio_source, x); });
  measured("vocoder", ltx2::vocoder_memory(vocoder.config(), mel.size(2)),
           [&] { return vocoder.run(*vocoder_source, mel).waveform; });
}

}  // namespace

int main(int count, char** values) {
  keep_freed_memory();
  kernels::install_memory_pool();
  CLI::App app("Decodes random sound latents.", "bench_sound");
  std::string model;
  std::int64_t latents = 126;
  app.add_option("model", model, "diffusers folder")->required();
  app.add_option("--latents", latents, "25 a second");
  CLI11_PARSE(app, count, values);
  try {
    run(model, latents);
  } catch (const Error& error) {
    fmt::print(stderr, "bench_sound: {}\n  try: {}\n", error.what(), error.hint());
    return error_kind_info(error.kind()).exit_code;
  }
  return 0;
}
