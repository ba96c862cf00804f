// One arm of bench/step/run.py: steps of the transformer in DIR (a diffusers component folder) on the inputs
// of FILE.  Prints JSON: seconds, processor seconds and minor page faults of each step after the warm-up,
// those of the mapped weights among them, and a checksum of the velocities; --output keeps the last ones.
#include "random_adapters.h"

#include "base/allocator.h"
#include "bytes/format/writer.h"
#include "kernels/work_timer.h"
#include "models/ltx2/transformer/transformer.h"
#include "nn/json_file.h"
#include "weights/dtype.h"
#include "weights/quantized.h"
#include "weights/weight_source.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <sys/resource.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace sluice;
namespace fs = std::filesystem;

struct Arguments {
  std::string model, inputs, output, dtype = "bf16";
  std::vector<std::int64_t> grid;
  double fps = 24;
  std::int64_t lora_rank = 0;
  int steps = 5, warmup = 1, threads = 0;
  bool profile = false;
};

at::Tensor read_tensor(const Checkpoint& file, const std::string& name) {
  const TensorInfo* info = file.find(name);
  if (!info) throw Error(ErrorKind::bad_input, fmt::format("no tensor '{}' among the inputs", name));
  at::Tensor tensor = at::empty(info->shape, at::TensorOptions().dtype(weights::to_scalar_type(info->dtype)));
  file.read(*info, {static_cast<std::byte*>(tensor.data_ptr()), info->size});
  return tensor;
}

ltx2::StreamInput stream(const Checkpoint& file, const std::string& prefix, at::ScalarType dtype) {
  const at::Tensor timestep = read_tensor(file, "timestep");
  return {.latents = read_tensor(file, prefix + "latents").to(dtype),
          .text = read_tensor(file, prefix + "text").to(dtype),
          .timestep = timestep,
          .sigma = timestep};
}

void save(const fs::path& path, const ltx2::Streams& velocities) {
  std::vector<at::Tensor> tensors;
  std::vector<bytes::TensorData> data;
  for (const at::Tensor* tensor : {&velocities.video, &velocities.audio}) {
    tensors.push_back(tensor->to(at::kFloat).contiguous());
    data.push_back(
        {{data.empty() ? "video" : "audio", Dtype::F32, tensors.back().sizes().vec()},
         {static_cast<const std::byte*>(tensors.back().const_data_ptr()), tensors.back().nbytes()}});
  }
  bytes::write_safetensors(path, data);
}

double cpu_time() {  // of all threads
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

long minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Seconds of the last step by kind of work, as a field of the JSON.
std::string kinds_of(double step) {
  const auto [linear, attention, convolution, elementwise] = kernels::work_seconds();
  return fmt::format(", \"kinds\": {{\"linear\": {}, \"attention\": {}, \"elementwise\": {}, \"other\": {}}}",
                     linear, attention, elementwise, step - linear - attention - elementwise);
}

void run(const Arguments& arguments) {
  at::NoGradGuard no_grad;
  if (arguments.threads > 0) at::set_num_threads(arguments.threads);
  const at::ScalarType dtype = arguments.dtype == "f32" ? at::kFloat : at::kBFloat16;
  const fs::path config = fs::path(arguments.model) / "config.json";
  const ltx2::Transformer model(ltx2::TransformerConfig::parse(nn::read_json_file(config), config.string()));
  const Checkpoint checkpoint = Checkpoint::open(arguments.model);
  weights::ComponentTable table = weights::whole_checkpoint("transformer", checkpoint);
  weights::gather_quantized(table);
  weights::account(table, model.groups());
  auto source = weights::make_weight_source(table, std::make_shared<bytes::MappedCheckpoint>(checkpoint));
  if (arguments.lora_rank > 0)
    source = std::make_unique<bench::RandomAdapters>(std::move(source), arguments.lora_rank, model.groups());

  const Checkpoint inputs = Checkpoint::open(arguments.inputs);
  ltx2::Pass pass{.video = stream(inputs, "", dtype), .audio = stream(inputs, "audio_", dtype)};
  const ltx2::VideoGrid grid{arguments.grid[0], arguments.grid[1], arguments.grid[2]};
  const ltx2::Positions positions =
      ltx2::make_positions(model.config(), ltx2::video_coordinates(model.config(), grid, arguments.fps),
                           ltx2::audio_coordinates(model.config(), pass.audio.latents.size(1)));

  std::vector<double> seconds, cpu_seconds;
  std::vector<long> faults;
  ltx2::Streams last;
  kernels::Workspace workspace;
  std::string kinds;
  for (int step = -arguments.warmup; step < arguments.steps; ++step) {
    kernels::time_work(arguments.profile);
    const auto begin = std::chrono::steady_clock::now();
    const double cpu_begin = cpu_time();
    const long faults_begin = minor_faults();
    const kernels::Workspace::Scope scope(workspace);
    const std::vector<ltx2::Streams> velocities = model.forward(*source, positions, {pass}, workspace);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    if (step < 0) continue;
    seconds.push_back(elapsed.count());
    cpu_seconds.push_back(cpu_time() - cpu_begin);
    if (arguments.profile) kinds = kinds_of(elapsed.count());
    faults.push_back(minor_faults() - faults_begin);
    if (step + 1 == arguments.steps) last = {velocities[0].video.clone(), velocities[0].audio.clone()};
  }
  const double checksum = last.video.to(at::kDouble).abs().mean().item<double>();
  if (!arguments.output.empty()) save(arguments.output, last);
  fmt::print(
      "{{\"seconds\": [{}], \"cpu_seconds\": [{}], \"minor_faults\": [{}], \"mean_abs_velocity\": {}{}}}\n",
      fmt::join(seconds, ", "), fmt::join(cpu_seconds, ", "), fmt::join(faults, ", "), checksum, kinds);
}

}  // namespace

int main(int count, char** values) {
  keep_freed_memory();
  CLI::App app("Times steps of a transformer.", "bench_step");
  Arguments arguments;
  app.add_option("model", arguments.model, "folder with config.json and weights")->required();
  app.add_option("--inputs", arguments.inputs, "safetensors: latents, text, audio_…, timestep")->required();
  app.add_option("--grid", arguments.grid, "latent frames, height, width")->expected(3)->required();
  app.add_option("--fps", arguments.fps, "frames a second");
  app.add_option("--dtype", arguments.dtype, "compute dtype")->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--lora-rank", arguments.lora_rank, "beside every matrix an adapter of this rank");
  app.add_option("--steps", arguments.steps, "timed steps");
  app.add_option("--warmup", arguments.warmup, "steps before them");
  app.add_flag("--profile", arguments.profile, "say how the last step's time divides by kind of work");
  app.add_option("--threads", arguments.threads, "0: as many as LibTorch takes");
  app.add_option("--output", arguments.output, "where the velocities go");
  CLI11_PARSE(app, count, values);
  try {
    run(arguments);
  } catch (const Error& error) {
    fmt::print(stderr, "bench_step: {}\n  try: {}\n", error.what(), error.hint());
    return error_kind_info(error.kind()).exit_code;
  }
  return 0;
}
