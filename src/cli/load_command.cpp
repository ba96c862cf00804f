#include "base/disk_space.h"
#include "base/log.h"
#include "base/output_name.h"
#include "base/peak_memory.h"
#include "base/temporary_file.h"
#include "cli/cached_share.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/load_result.h"
#include "cli/parse_word.h"
#include "cli/read_flags.h"
#include "cli/selection_flags.h"

#include <sluice/error.h>
#include <sluice/memory.h>
#include <sluice/sinks.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <thread>

namespace sluice::cli {
namespace {

constexpr const char* kExamples = R"(examples:
  sluice load ltx-2.3-22b-dev.safetensors --into touched --cache drop -v
  sluice load model/ --skip-vision --cast F32:BF16 --rename 'model.*=*' -o text.safetensors)";

enum class Into {
  fresh,    // a dictionary in memory that is new
  touched,  // the same in memory that was written to before the clock starts
  nowhere,  // through the read buffers, kept by nobody
};

struct LoadFlags {
  std::filesystem::path path, output;
  ReadFlags read;
  SelectionFlags selection;
  std::string into = "fresh", huge_pages = "auto";
  unsigned repeat = 1;
  double memory_multiplier = 1;
  bool dry_run = false, overwrite = false;

  Into destination() const {
    return parse_word<Into>("--into", into,
                            std::array{Word<Into>{"fresh", Into::fresh}, Word<Into>{"touched", Into::touched},
                                       Word<Into>{"nowhere", Into::nowhere}});
  }
  HugePages pages() const {
    return parse_word<HugePages>(
        "--huge-pages", huge_pages,
        std::array{Word<HugePages>{"auto", HugePages::automatic},
                   Word<HugePages>{"always", HugePages::always}, Word<HugePages>{"never", HugePages::never}});
  }
  // Whether the result stays in memory.
  bool keeps() const { return output.empty() && destination() != Into::nowhere; }

  void check() const {
    destination();
    pages();
    if (repeat == 0) throw Error(ErrorKind::usage, "--repeat 0 loads nothing", "use --dry-run");
    if (!(memory_multiplier >= 1 && memory_multiplier <= 1000)) {
      throw Error(ErrorKind::usage, fmt::format("--memory-multiplier {:g} is impossible", memory_multiplier),
                  "give a number from 1 to 1000");
    }
  }
};

// Passes nothing on: what it is told to take has been read.
class NowhereSink final : public TensorSink {
 public:
  std::span<std::byte> destination(std::size_t) override { return {}; }
  void take(std::size_t, Bytes, std::span<const std::byte>) override {}
};

// One load after its pre-flight.
class Loading {
 public:
  Loading(const LoadFlags& flags, const LoadPlan& plan, const ReadOptions& options, const Context& context)
      : flags_(flags), plan_(plan), options_(options), context_(context) {}

  LoadResult run(const MemoryFigures& memory) {
    PeakMemory peak;
    LoadResult result{.memory = memory};
    result.cached_before = cached_share(plan_.checkpoint());
    if (flags_.keeps()) slab_ = std::make_shared<Slab>(flags_.pages());
    if (flags_.keeps() && flags_.destination() == Into::touched) result.prefault_seconds = touch();
    for (unsigned i = 0; i < flags_.repeat; ++i) result.runs.push_back(run_once());
    result.huge_pages = slab_ && slab_->huge();
    result.cached_after = cached_share(plan_.checkpoint());
    result.peak_anonymous = peak.finish();
    return result;
  }

 private:
  double touch() {
    constexpr Bytes kStep = MiB(256);  // between two looks at whether to stop
    const Bytes size = lay_out(plan_).size;
    const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    slab_->reserve(size);
    double seconds = 0;
    for (Bytes done = 0; done < size;) {
      if (context_.cancel.cancelled()) throw Error(ErrorKind::interrupted, "interrupted");
      done = std::min(done + kStep, size);
      seconds += slab_->touch(done, threads);
      context_.progress.at("touch", static_cast<std::int64_t>((done + MiB(1) - 1) >> 20),
                           static_cast<std::int64_t>((size + MiB(1) - 1) >> 20), "MiB");
    }
    return seconds;
  }

  LoadResult::Run run_once() {
    const auto start = std::chrono::steady_clock::now();
    LoadReport report = load_to_its_place();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return {seconds.count(), std::move(report)};
  }

  LoadReport load_to_its_place() {
    if (!flags_.output.empty()) {
      return load_to_file(plan_, flags_.output, plan_.checkpoint().metadata(), options_, &context_.progress,
                          &context_.cancel);
    }
    if (!slab_) {
      NowhereSink sink;
      return load(plan_, sink, options_, &context_.progress, &context_.cancel);
    }
    LoadReport report;
    load_dictionary(plan_, slab_, options_, &report, &context_.progress, &context_.cancel);
    return report;
  }

  const LoadFlags& flags_;
  const LoadPlan& plan_;
  const ReadOptions& options_;
  const Context& context_;
  std::shared_ptr<Slab> slab_;  // of the dictionary, for all runs
};

MemoryNeed need_of(const LoadFlags& flags, const LoadPlan& plan, const ReadOptions& options) {
  return {.targets = flags.keeps() ? lay_out(plan).size : 0,
          .pool = options.pool,
          .staging = plan.staging_bytes(flags.keeps()),
          .multiplier = flags.memory_multiplier};
}

// What was opened, and by which name.
std::vector<std::filesystem::path> files_of(const LoadFlags& flags, const Checkpoint& checkpoint) {
  std::vector<std::filesystem::path> files = {flags.path};
  for (const Shard& shard : checkpoint.shards()) files.push_back(shard.path);
  return files;
}

// Everything that can be refused without reading a tensor.
MemoryFigures check_before_reading(const LoadFlags& flags, const LoadPlan& plan, const ReadOptions& options) {
  const MemoryNeed need = need_of(flags, plan, options);
  const MemoryFigures memory{need.total(), available_memory()};
  if (!flags.output.empty()) {
    check_target(flags.output, flags.overwrite ? Existing::overwrite : Existing::refuse);
    refuse_input_as_output(flags.output, files_of(flags, plan.checkpoint()));
    require_disk_space(flags.output, plan.target_bytes());
  }
  require_memory(need, memory.available, flags.path.string());
  return memory;
}

void run_load(const LoadFlags& flags, const Context& context) {
  flags.check();
  const ReadOptions options = flags.read.options();
  const LoadRequest request = flags.selection.request();
  const Checkpoint checkpoint =
      Checkpoint::open(flags.path, [&](std::string_view name) { return wanted_by(request.filter, name); });
  for (const std::string& warning : checkpoint.warnings()) log_warning(warning);
  const LoadPlan plan = plan_load(checkpoint, request);
  const MemoryFigures memory = check_before_reading(flags, plan, options);
  if (flags.dry_run) {
    if (context.flags.json) {
      print_json(as_json(plan, memory));
    } else {
      std::cout << as_text(plan, memory);
    }
    return;
  }
  const LoadResult result = Loading(flags, plan, options, context).run(memory);
  for (const ShardLoadReport& shard : result.runs.back().report.shards) log_info(choice_line(shard));
  if (context.flags.json) {
    print_json(as_json(result));
  } else {
    std::cout << as_text(result);
  }
}

}  // namespace

Action add_load(CLI::App& app) {
  auto flags = std::make_shared<LoadFlags>();
  app.footer(kExamples);
  app.add_option("path", flags->path, "safetensors file, folder or index")->required();
  flags->read.add_to(app);
  flags->selection.add_to(app);

  const char* group = "Destination";
  auto* into = app.add_option("--into", flags->into,
                              "fresh: a dictionary in new memory; touched: in memory that was touched before "
                              "the clock starts; nowhere: through the read buffers, kept by nobody")
                   ->capture_default_str()
                   ->group(group);
  app.add_option("--huge-pages", flags->huge_pages, "of the dictionary: auto, always or never")
      ->capture_default_str()
      ->group(group);
  auto* repeat = app.add_option("--repeat", flags->repeat, "load so many times, into the same memory")
                     ->capture_default_str()
                     ->group(group);
  app.add_option("--memory-multiplier", flags->memory_multiplier,
                 "require so many times the memory that the load itself needs")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--dry-run", flags->dry_run, "check everything and show the result's tensors; headers only")
      ->group(group);
  auto* output = app.add_option("-o,--output", flags->output, "write the tensors to one safetensors file")
                     ->excludes(into)
                     ->excludes(repeat)
                     ->group("Output");
  app.add_flag("--overwrite", flags->overwrite, "an existing file may be replaced")->group("Output");
  return [flags, output](const Context& context) {
    if (output->count() > 0 && flags->output.empty())
      throw Error(ErrorKind::usage, "--output is empty", "name a file");
    run_load(*flags, context);
  };
}

}  // namespace sluice::cli
