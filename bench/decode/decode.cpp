// One arm of bench/decode/memory.py: decodes random latents with the autoencoder in DIR (a diffusers
// component folder).  Prints JSON: the plan, its bytes beside those measured, seconds.
#include "base/allocator.h"
#include "base/peak_memory.h"
#include "base/system_memory.h"
#include "kernels/memory_pool.h"
#include "models/ltx2/video_vae/decode_clip.h"
#include "nn/json_file.h"
#include "weights/dtype.h"
#include "weights/weight_source.h"

#include <sluice/error.h>
#include <sluice/units.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <string>

namespace {

using namespace sluice;
namespace fs = std::filesystem;

struct Arguments {
  std::string model, dtype = "bf16", mode = "auto", budget, scratch = ".";
  std::int64_t width = 768, height = 512, frames = 121;
  int threads = 0, rounds = 1;
  bool plan_only = false;
};

ltx2::DecodeWay way_of(const std::string& mode) {
  if (mode == "stream") return ltx2::DecodeWay::stream;
  if (mode == "whole") return ltx2::DecodeWay::whole;
  return mode == "tiled" ? ltx2::DecodeWay::tiled : ltx2::DecodeWay::automatic;
}

at::ScalarType stored_dtype(const weights::ComponentTable& table) {
  return weights::to_scalar_type(table.tensors.at("decoder.conv_in.conv.weight").dtype);
}

std::string text_of(const std::optional<ltx2::SpatialTiles>& tiles) {
  if (!tiles) return "";
  return fmt::format("{} x {} every {} x {}", tiles->width.tile, tiles->height.tile, tiles->width.stride,
                     tiles->height.stride);
}

nlohmann::json plan_json(const ltx2::DecodePlan& plan) {
  return {{"planned", plan.memory},       {"piece_bytes", plan.pieces.bytes},
          {"tiles", text_of(plan.space)}, {"file_bytes", plan.file_bytes},
          {"reason", plan.reason},        {"warning", plan.warning}};
}

void run(const Arguments& arguments) {
  c10::InferenceMode no_graph;
  if (arguments.threads > 0) at::set_num_threads(arguments.threads);
  const fs::path config = fs::path(arguments.model) / "config.json";
  const ltx2::VideoDecoder decoder(ltx2::VideoVaeConfig::parse(nn::read_json_file(config), config.string()));
  const Checkpoint checkpoint = Checkpoint::open(arguments.model);
  const weights::ComponentTable table = weights::whole_checkpoint("vae", checkpoint);
  const auto source =
      weights::make_weight_source(table, std::make_shared<bytes::MappedCheckpoint>(checkpoint));

  const ltx2::LatentClip clip{.frames = (arguments.frames - 1) / decoder.config().temporal_ratio() + 1,
                              .height = arguments.height / decoder.config().spatial_ratio(),
                              .width = arguments.width / decoder.config().spatial_ratio()};
  const ltx2::DecodeDtypes dtypes{.compute = arguments.dtype == "f32" ? at::kFloat : at::kBFloat16,
                                  .weights = stored_dtype(table)};
  const std::int64_t budget = arguments.budget.empty()
                                  ? std::numeric_limits<std::int64_t>::max()
                                  : static_cast<std::int64_t>(parse_bytes(arguments.budget));
  const ltx2::DecodePlan plan =
      ltx2::plan_decode(decoder.config(), clip, dtypes, way_of(arguments.mode), budget);
  nlohmann::json report = plan_json(plan);
  if (!arguments.plan_only) {
    const at::Tensor latents =
        at::randn({clip.batch, decoder.config().latent_channels, clip.frames, clip.height, clip.width});
    at::mm(at::ones({64, 64}), at::ones({64, 64}));  // threads and their memory, before anything is measured
    kernels::begin_pool_phase(0);
    const Bytes before = anonymous_memory();
    PeakMemory peak;
    double sum = 0;
    std::int64_t frames = 0;
    std::vector<double> seconds;
    for (int round = 0; round < arguments.rounds; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      sum = 0, frames = 0;
      ltx2::decode_clip(
          decoder, *source, latents, plan,
          [&](const at::Tensor& piece) {
            for (std::int64_t i = 0; i < piece.size(2); ++i)
              sum += piece.select(2, i).to(at::kFloat).mean().item<double>();
            frames += piece.size(2);
          },
          arguments.scratch);
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    report["measured"] = peak.finish() - std::min(before, peak.so_far());
    report["tensors"] = kernels::pool_figures().peak_live;
    report["pool"] = kernels::pool_figures().extent;
    report["before"] = before;
    report["seconds"] = seconds.back();  // the others warmed up, as the reference does
    report["frames"] = frames;
    report["mean"] = sum / static_cast<double>(frames);
  }
  fmt::print("{}\n", report.dump());
}

}  // namespace

int main(int count, char** values) {
  keep_freed_memory();
  kernels::install_memory_pool();
  CLI::App app("Decodes a clip of random latents.", "bench_decode");
  Arguments arguments;
  app.add_option("model", arguments.model, "folder with config.json and weights")->required();
  app.add_option("--width", arguments.width, "pixels");
  app.add_option("--height", arguments.height, "pixels");
  app.add_option("--frames", arguments.frames, "8k+1");
  app.add_option("--dtype", arguments.dtype, "compute dtype")->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--decode", arguments.mode, "auto, stream, whole, tiled")
      ->check(CLI::IsMember({"auto", "stream", "whole", "tiled"}));
  app.add_option("--budget", arguments.budget, "bytes, e.g. 700MiB; default: no limit");
  app.add_option("--scratch", arguments.scratch, "where frames of tiles wait");
  app.add_option("--threads", arguments.threads, "0: as many as LibTorch takes");
  app.add_option("--rounds", arguments.rounds, "decodes, of which the last one's time is told")
      ->check(CLI::PositiveNumber);
  app.add_flag("--plan-only", arguments.plan_only, "print the plan, decode nothing");
  CLI11_PARSE(app, count, values);
  try {
    run(arguments);
  } catch (const Error& error) {
    fmt::print(stderr, "bench_decode: {}\n  try: {}\n", error.what(), error.hint());
    return error_kind_info(error.kind()).exit_code;
  }
  return 0;
}
