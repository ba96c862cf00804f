// A checkpoint in 8 or 4 bits.
#include <sluice/quantize.h>

#include "base/disk_space.h"
#include "base/file.h"
#include "base/output_name.h"
#include "base/peak_memory.h"
#include "base/process_usage.h"
#include "base/system_memory.h"
#include "base/temporary_file.h"
#include "pipeline/quantize_input.h"
#include "pipeline/quantize_labels.h"
#include "weights/quantize/quantize_checkpoint.h"

#include <sluice/error.h>
#include <sluice/memory.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace sluice {
namespace pipeline {
namespace {

namespace fs = std::filesystem;
using weights::QuantizeTask;

constexpr Bytes kUsualMemory = MiB(448);
// Headers, index and manifest beside the data.
constexpr Bytes kSpareDisk = MiB(64);

weights::QuantFormat as_layer_format(QuantizeFormat format) {
  return format == QuantizeFormat::fp8 ? weights::QuantFormat::fp8 : weights::QuantFormat::nf4;
}

void check_names(const QuantizeRequest& request) {
  const fs::path input = full_name(request.input), output = full_name(request.output);
  if (!lies_in(input, output) && !lies_in(output, input)) return;
  throw Error(ErrorKind::usage,
              fmt::format("{}: lies in the input, or the input in it", request.output.string()),
              "give a folder elsewhere");
}

std::vector<QuantizeComponent> chosen_components(const QuantizeRequest& request, const QuantizeInput& input) {
  std::vector<QuantizeComponent> components = request.components;
  if (components.empty()) {
    for (auto component : {QuantizeComponent::transformer, QuantizeComponent::text_encoder}) {
      if (input.holds(component)) components.push_back(component);
    }
  }
  std::ranges::sort(components);
  const auto twins = std::ranges::unique(components);
  components.erase(twins.begin(), twins.end());
  for (QuantizeComponent component : components) {
    if (input.holds(component)) continue;
    throw Error(ErrorKind::usage,
                fmt::format("{}: holds no {}", request.input.string(), to_string(component)),
                "leave it out of --components");
  }
  return components;
}

std::vector<QuantizeTask> make_tasks(const QuantizeRequest& request, const QuantizeInput& input,
                                     const QuantizeLabel& label) {
  std::vector<QuantizeTask> tasks;
  for (const InputCheckpoint& part : input.checkpoints) {
    const TensorNames matrices = select_matrices(part.checkpoint, part.places, label.components);
    QuantizeTask task = weights::make_task(part.checkpoint, matrices, as_layer_format(request.format),
                                           request.shard_size, part.names);
    task.folder = part.folder;
    task.metadata = label_metadata(part.checkpoint.metadata(), label, matrices);
    tasks.push_back(std::move(task));
  }
  return tasks;
}

std::size_t quantized_tensors(const std::vector<QuantizeTask>& tasks) {
  std::size_t count = 0;
  for (const QuantizeTask& task : tasks) count += task.layout.quantized();
  return count;
}

void require_work(const QuantizeRequest& request, const std::vector<QuantizeTask>& tasks) {
  if (quantized_tensors(tasks) > 0) return;
  throw Error(ErrorKind::bad_input,
              fmt::format("{}: holds nothing to quantize: no linear layer of a transformer or text encoder",
                          request.input.string()),
              "give an LTX-2 checkpoint or a Gemma 3 folder");
}

weights::QuantizeMemory memory_for(const QuantizeRequest& request, const std::vector<QuantizeTask>& tasks) {
  Bytes largest = 0;
  for (const QuantizeTask& task : tasks) largest = std::max(largest, task.largest_held());
  const Bytes available = available_memory();
  if (!request.memory_limit) return weights::split_memory(std::min(kUsualMemory, available), largest);
  const Bytes held = anonymous_memory();
  return weights::split_memory(std::min(*request.memory_limit, held + available), largest, held);
}

Bytes missing_bytes(const std::vector<QuantizeTask>& tasks, const weights::PartialFolder& folder) {
  Bytes missing = kSpareDisk;
  for (const QuantizeTask& task : tasks) {
    for (const weights::QuantizedShard& shard : task.layout.shards) {
      if (folder.finished((task.folder / shard.name).string()) == nullptr) missing += shard.data_bytes;
    }
  }
  return missing;
}

// Small files: each run copies them anew.
void copy_files(const QuantizeInput& input, const std::vector<QuantizeTask>& tasks,
                const QuantizeLabel& label, const fs::path& to) {
  for (const fs::path& file : input.files) {
    const auto task = std::ranges::find(tasks, file.parent_path(), &QuantizeTask::folder);
    const bool config =
        file.filename() == "config.json" && task != tasks.end() && task->layout.quantized() > 0;
    fs::create_directories((to / file).parent_path());
    if (config) {
      write_text(to / file, label_config(input.path / file, label));
      continue;
    }
    std::error_code error;
    fs::copy_file(input.path / file, to / file, fs::copy_options::overwrite_existing, error);
    if (error) {
      throw Error(ErrorKind::io,
                  fmt::format("{}: cannot copy it to {}: {}", (input.path / file).string(), to.string(),
                              system_reason(error.value())),
                  system_remedy(error.value()));
    }
  }
}

nlohmann::json summary(const QuantizeRequest& request, const QuantizeLabel& label,
                       const weights::QuantizeCount& count, const UsedBetween& used, Bytes peak) {
  const double rate = used.seconds > 0 ? static_cast<double>(count.read) / used.seconds : 0;
  nlohmann::json components = nlohmann::json::array();
  for (QuantizeComponent component : label.components) components.push_back(to_string(component));
  return {{"output", request.output.string()},
          {"format", to_string(request.format)},
          {"components", components},
          {"quantized_tensors", label.tensors},
          {"bytes_in", count.read},
          {"bytes_out", count.written},
          {"source_bytes", count.source},
          {"seconds", used.seconds},
          {"cpu_seconds", used.cpu_seconds},
          {"bytes_per_second", rate},
          {"shards", count.shards},
          {"shards_taken_up", count.taken_up},
          {"read_backend", count.backend},
          {"peak_anonymous", peak}};
}

std::string run(const QuantizeRequest& request, Progress* progress, const CancelToken* cancel) {
  const Existing existing = request.overwrite ? Existing::overwrite : Existing::refuse;
  const ProcessUsage before = process_usage();
  PeakMemory peak;
  check_names(request);
  weights::check_target_folder(request.output, existing);
  const QuantizeInput input = open_quantize_input(request.input);
  QuantizeLabel label{.format = request.format, .components = chosen_components(request, input)};
  const std::vector<QuantizeTask> tasks = make_tasks(request, input, label);
  require_work(request, tasks);
  label.tensors = quantized_tensors(tasks);
  const weights::QuantizeMemory memory = memory_for(request, tasks);

  weights::PartialFolder folder(request.output, manifest_of(input, label, request.shard_size));
  require_disk_space(folder.path(), missing_bytes(tasks, folder));
  weights::QuantizeCount count;
  for (const QuantizeTask& task : tasks) count.source += task.plan.read_bytes();
  // A limit counts the page cache that reading fills.
  const bool limited = request.memory_limit && request.cache == CachePolicy::automatic;
  const ReadOptions read{.backend = request.read_backend,
                         .cache = limited ? CachePolicy::drop : request.cache};
  weights::CheckpointQuantizer quantizer(
      {.read = read, .memory = memory, .progress = progress, .cancel = cancel});
  for (const QuantizeTask& task : tasks) quantizer.quantize(task, folder, count);
  copy_files(input, tasks, label, folder.path());
  folder.commit(existing);
  return summary(request, label, count, process_usage() - before, peak.finish()).dump(2);
}

}  // namespace
}  // namespace pipeline

std::string quantize(const QuantizeRequest& request, Progress* progress, const CancelToken* cancel) try {
  return pipeline::run(request, progress, cancel);
} catch (const Error& error) {
  if (error.kind() != ErrorKind::interrupted) throw;
  throw Error(ErrorKind::interrupted,
              fmt::format("interrupted; what is done is in {}.partial", request.output.string()),
              "run the same command again: it goes on after the last complete shard");
} catch (const std::filesystem::filesystem_error& error) {
  throw Error(ErrorKind::io,
              fmt::format("{}: {}", error.path1().string(), system_reason(error.code().value())),
              system_remedy(error.code().value()));
}

}  // namespace sluice
