// One arm of bench/encode/run.py: encodes random frames, pushed one by one, with the autoencoder in DIR (a
// diffusers component folder).  Prints JSON: planned bytes beside those measured, seconds of every round.
#include "base/allocator.h"
#include "base/peak_memory.h"
#include "base/system_memory.h"
#include "kernels/memory_pool.h"
#include "models/ltx2/video_vae/encode_memory.h"
#include "models/ltx2/video_vae/encode_stream.h"
#include "nn/json_file.h"
#include "weights/weight_source.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace sluice;
namespace fs = std::filesystem;

struct Arguments {
  std::string model, dtype = "bf16";
  std::int64_t width = 512, height = 320, frames = 49, piece = ltx2::EncodePiece{}.frames;
  int threads = 0, rounds = 1;
};

// Seconds of one encode.
double encode(const ltx2::VideoEncoder& encoder, weights::WeightSource& source, const Arguments& arguments,
              at::ScalarType compute, const at::Tensor& frame) {
  const auto begin = std::chrono::steady_clock::now();
  ltx2::VideoEncodeStream stream(encoder, source, compute, [](const ltx2::EncodedFrames&) {},
                                 {.frames = arguments.piece});
  for (std::int64_t i = 1; i <= arguments.frames; ++i)
    stream.push(frame, i == arguments.frames ? ltx2::Last::yes : ltx2::Last::no);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void run(const Arguments& arguments) {
  c10::InferenceMode no_graph;
  if (arguments.threads > 0) at::set_num_threads(arguments.threads);
  const fs::path config = fs::path(arguments.model) / "config.json";
  const ltx2::VideoEncoder encoder(
      ltx2::VideoEncoderConfig::parse(nn::read_json_file(config), config.string()));
  const Checkpoint checkpoint = Checkpoint::open(arguments.model);
  const auto source = weights::make_weight_source(weights::whole_checkpoint("vae", checkpoint),
                                                  std::make_shared<bytes::MappedCheckpoint>(checkpoint));
  const at::ScalarType compute = arguments.dtype == "f32" ? at::kFloat : at::kBFloat16;
  const at::Tensor frame = at::rand({1, encoder.config().in_channels, 1, arguments.height, arguments.width});

  at::mm(at::ones({64, 64}), at::ones({64, 64}));  // threads and their memory, before anything is measured
  kernels::begin_pool_phase(0);
  const Bytes before = anonymous_memory();
  PeakMemory peak;
  std::vector<double> seconds;
  for (int round = 0; round < arguments.rounds; ++round)
    seconds.push_back(encode(encoder, *source, arguments, compute, frame));
  const nlohmann::json report = {
      {"planned",
       ltx2::encode_memory(encoder.config(),
                           {.height = arguments.height, .width = arguments.width, .frames = arguments.frames},
                           compute, {.frames = arguments.piece})},
      {"measured", peak.finish() - std::min(before, peak.so_far())},
      {"tensors", kernels::pool_figures().peak_live},
      {"pool", kernels::pool_figures().extent},
      {"seconds", seconds}};
  fmt::print("{}\n", report.dump());
}

}  // namespace

int main(int count, char** values) {
  keep_freed_memory();
  kernels::install_memory_pool();
  CLI::App app("Encodes a clip of random frames.", "bench_encode");
  Arguments arguments;
  app.add_option("model", arguments.model, "folder with config.json and weights")->required();
  app.add_option("--width", arguments.width, "pixels");
  app.add_option("--height", arguments.height, "pixels");
  app.add_option("--frames", arguments.frames, "8k+1");
  app.add_option("--piece", arguments.piece, "frames at once");
  app.add_option("--dtype", arguments.dtype, "compute dtype")->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--threads", arguments.threads, "0: as many as LibTorch takes");
  app.add_option("--rounds", arguments.rounds, "encodes")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, count, values);
  try {
    run(arguments);
  } catch (const Error& error) {
    fmt::print(stderr, "bench_encode: {}\n  try: {}\n", error.what(), error.hint());
    return error_kind_info(error.kind()).exit_code;
  }
  return 0;
}
