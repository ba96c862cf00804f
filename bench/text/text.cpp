// The text phase by itself: a text encoder FOLDER and the connectors of a diffusers component folder, staged
// from disk through slots or computed from a mapping, with prompts of given lengths.  Prints JSON: of each
// part seconds, bytes read, the most in tensors and in anonymous memory, and what its tensors are planned to
// be (without slots and without the scratch in which weights are widened).
#include "base/allocator.h"
#include "base/peak_memory.h"
#include "base/system_memory.h"
#include "bytes/read/mapped_checkpoint.h"
#include "kernels/memory_pool.h"
#include "models/ltx2/connectors/connectors.h"
#include "models/ltx2/text/gemma.h"
#include "models/ltx2/text/gemma_keys.h"
#include "nn/json_file.h"
#include "weights/quantized.h"
#include "weights/stage.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace sluice;
namespace fs = std::filesystem;

constexpr std::int64_t kPositions = 1024;

struct Arguments {
  std::string text_encoder, connectors, dtype = "bf16", from = "disk";
  std::vector<std::int64_t> tokens = {100};
  std::int64_t held_mib = 256;
  int threads = 0;
};

std::unique_ptr<weights::WeightSource> open_source(const Arguments& arguments,
                                                   const weights::ComponentTable& table,
                                                   const std::vector<const weights::ParameterGroup*>& order) {
  if (arguments.from == "mmap")
    return weights::make_weight_source(table, std::make_shared<bytes::MappedCheckpoint>(table.checkpoint));
  return weights::make_staged_source(table, weights::plan_stage(table, order, {.resident_blocks = 0}),
                                     {.read = {.backend = ReadBackend::direct}});
}

template <typename Work>
nlohmann::json measured(const weights::WeightSource* source, std::int64_t planned, Work work) {
  const Bytes read_before = source ? source->bytes_read() : 0, live_before = kernels::pool_figures().live;
  kernels::begin_pool_phase(0);
  PeakMemory peak;
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {{"seconds", seconds.count()},
          {"bytes_read", (source ? source->bytes_read() : 0) - read_before},
          {"tensors", kernels::pool_figures().peak_live - live_before},
          {"planned", planned},
          {"anonymous", peak.finish()}};
}

nlohmann::json run(const Arguments& arguments) {
  at::NoGradGuard no_grad;
  if (arguments.threads > 0) at::set_num_threads(arguments.threads);
  keep_freed_memory();
  kernels::install_memory_pool();
  const at::ScalarType dtype = arguments.dtype == "f32" ? at::kFloat : at::kBFloat16;
  const ltx2::FeatureLimits limits{.held_states = MiB(static_cast<Bytes>(arguments.held_mib))};

  const fs::path encoder_config = fs::path(arguments.text_encoder) / "config.json";
  const ltx2::GemmaEncoder encoder(
      ltx2::GemmaConfig::parse(nn::read_json_file(encoder_config), encoder_config.string()));
  weights::ComponentTable encoder_table = ltx2::gemma_table(Checkpoint::open(arguments.text_encoder));
  weights::gather_quantized(encoder_table);
  weights::account(encoder_table, encoder.groups(), ltx2::gemma_ignored());
  const nlohmann::json config = nn::read_json_file(fs::path(arguments.connectors) / "config.json");
  const ltx2::Connectors connectors(ltx2::ConnectorsConfig::parse(config, arguments.connectors));
  weights::ComponentTable table =
      weights::whole_checkpoint("connectors", Checkpoint::open(arguments.connectors));
  weights::gather_quantized(table);
  weights::account(table, connectors.groups());

  std::vector<std::vector<ltx2::TokenId>> ids;
  std::vector<ltx2::GemmaInput> inputs;
  for (std::int64_t count : arguments.tokens) {
    ids.emplace_back(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
      ids.back()[static_cast<std::size_t>(i)] =
          static_cast<ltx2::TokenId>(i * 37 % encoder.config.vocab_size);
  }
  for (const auto& row : ids) {
    inputs.push_back({.ids = row,
                      .position_offset = kPositions - static_cast<std::int64_t>(row.size()),
                      .compute_dtype = dtype});
  }
  std::int64_t all = 0;
  for (std::int64_t count : arguments.tokens) all += count;
  const ltx2::FeatureMemory features_planned = ltx2::feature_memory(connectors.config(), all, dtype, limits);
  const std::vector<std::int64_t> lengths(arguments.tokens.size(), kPositions);

  nlohmann::json result = {{"anonymous_before", anonymous_memory()}};
  auto projections_source = open_source(arguments, table, connectors.projections.groups());
  ltx2::FeatureAccumulator features(connectors.projections, *projections_source, arguments.tokens, dtype,
                                    limits);
  {
    std::vector<at::Tensor> last;
    auto source = open_source(arguments, encoder_table, encoder.pass());
    result["encoder"] =
        measured(source.get(),
                 ltx2::gemma_memory(encoder.config, arguments.tokens, dtype) + features_planned.held, [&] {
                   ltx2::hidden_states(encoder, *source, inputs,
                                       [&](std::size_t prompt, std::int64_t state, const at::Tensor& hidden) {
                                         if (state + 1 < encoder.config.states())
                                           return features.add(prompt, state, hidden);
                                         last.push_back(hidden);
                                       });
                   // An encoder of few layers stands for one of many: its last state is taken again.
                   for (std::int64_t state = encoder.config.states() - 1;
                        state < connectors.config().text_proj_in_factor; ++state) {
                     for (std::size_t prompt = 0; prompt < last.size(); ++prompt)
                       features.add(prompt, state, last[prompt]);
                   }
                 });
  }
  std::vector<ltx2::PaddedFeatures> rows;
  result["projections"] = measured(projections_source.get(), features_planned.projecting, [&] {
    for (ltx2::TextFeatures& prompt : features.finish())
      rows.push_back(ltx2::padded_left(std::move(prompt), kPositions));
  });
  projections_source.reset();
  auto connectors_source = open_source(arguments, table, connectors.pass());
  double sum = 0;
  result["connectors"] =
      measured(connectors_source.get(), ltx2::connectors_memory(connectors.config(), lengths, dtype), [&] {
        for (const auto& context : ltx2::connect(connectors, *connectors_source, rows, dtype))
          sum += context.video_text.to(at::kDouble).sum().item<double>() +
                 context.audio_text.to(at::kDouble).sum().item<double>();
      });
  result["checksum"] = sum;
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("the text phase by itself");
  Arguments arguments;
  app.add_option("--text-encoder", arguments.text_encoder, "a Gemma 3 folder")->required();
  app.add_option("--connectors", arguments.connectors, "a diffusers component folder")->required();
  app.add_option("--tokens", arguments.tokens, "of each prompt")->delimiter(',');
  app.add_option("--dtype", arguments.dtype, "bf16 or f32");
  app.add_option("--from", arguments.from, "disk or mmap");
  app.add_option("--held", arguments.held_mib, "MiB of states held at once");
  app.add_option("--threads", arguments.threads, "0: all cores");
  CLI11_PARSE(app, argc, argv);
  try {
    fmt::print("{}\n", run(arguments).dump(2));
  } catch (const Error& error) {
    fmt::print(stderr, "bench_text: {}\n", error.what());
    return 1;
  }
}
