#include "weights/lora/lora_file.h"

#include "base/text.h"
#include "weights/dtype.h"
#include "weights/lora/lora_names.h"
#include "weights/lora/lora_scale.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ranges>

namespace sluice::weights {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kProblemsListed = 8;

// What the file has of one layer.
struct Layer {
  const TensorInfo* down = nullptr;
  const TensorInfo* up = nullptr;
  const TensorInfo* alpha = nullptr;
};

struct Contents {
  std::map<std::string, Layer> layers;        // by the file's name for them
  std::vector<std::string> foreign;           // tensors that belong to no pair
  std::map<std::string, std::string> others;  // kind of adapter -> its first tensor
};

struct Problems {
  std::vector<std::string> unusable;   // whatever the model is
  std::vector<std::string> misshapen;  // for this model
};

fs::path file_of(const fs::path& path) {
  if (!fs::is_directory(path)) return path;
  for (const char* name : {"adapter_model.safetensors", "pytorch_lora_weights.safetensors"}) {
    if (fs::exists(path / name)) return path / name;
  }
  return path;
}

// Two tensors for one part are as many adapters in one file.
void add_part(Contents& contents, const LoraName& name, const TensorInfo& tensor, Problems& problems) {
  Layer& layer = contents.layers[name.layer];
  const TensorInfo*& part = name.part == LoraPart::down ? layer.down
                            : name.part == LoraPart::up ? layer.up
                                                        : layer.alpha;
  if (part) {
    problems.unusable.push_back(
        fmt::format("{} and {} are the same part of a layer", in_quotes(part->name), in_quotes(tensor.name)));
  }
  part = &tensor;
}

Contents sort_out(const Checkpoint& checkpoint, Problems& problems) {
  Contents contents;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    if (const std::string_view kind = other_adapter_kind(tensor.name); !kind.empty()) {
      contents.others.emplace(kind, tensor.name);
    } else if (const auto name = parse_lora_name(tensor.name)) {
      add_part(contents, *name, tensor, problems);
    } else {
      contents.foreign.push_back(tensor.name);
    }
  }
  // A lone alpha is one of another kind of adapter, or of nothing.
  std::erase_if(contents.layers, [&](const auto& entry) {
    const Layer& layer = entry.second;
    if (layer.down || layer.up) return false;
    contents.foreign.push_back(layer.alpha->name);
    return true;
  });
  std::ranges::sort(contents.foreign);
  for (const auto& [kind, tensor] : contents.others)
    problems.unusable.push_back(fmt::format("{}, as {}, is not supported", kind, in_quotes(tensor)));
  return contents;
}

// Whether both halves are there, are matrices of one rank, and can be computed with.
bool is_pair(const Layer& layer, Problems& problems) {
  if (!layer.down || !layer.up) {
    problems.unusable.push_back(fmt::format("the other half of {} is missing",
                                            in_quotes((layer.down ? layer.down : layer.up)->name)));
    return false;
  }
  for (const TensorInfo* tensor : {layer.down, layer.up}) {
    if (tensor->shape.size() != 2) {
      problems.unusable.push_back(fmt::format("a convolution's LoRA, as {} {}, is not supported",
                                              in_quotes(tensor->name), format_shape(tensor->shape)));
      return false;
    }
    if (!can_compute_with(tensor->dtype)) {
      problems.unusable.push_back(fmt::format("{} is in {}, where BF16, F16 or F32 can be computed with",
                                              in_quotes(tensor->name), dtype_name(tensor->dtype)));
      return false;
    }
  }
  const std::int64_t rank = layer.down->shape[0];
  if (rank > 0 && rank == layer.up->shape[1]) return true;
  problems.unusable.push_back(fmt::format("{} {} and {} {} have no common rank", in_quotes(layer.down->name),
                                          format_shape(layer.down->shape), in_quotes(layer.up->name),
                                          format_shape(layer.up->shape)));
  return false;
}

bool fits(const Layer& layer, const std::vector<std::int64_t>& matrix, Problems& problems) {
  const std::int64_t out = layer.up->shape[0], in = layer.down->shape[1];
  if (matrix == std::vector{out, in}) return true;
  problems.misshapen.push_back(fmt::format("{} is for {}, the model has {}", in_quotes(layer.down->name),
                                           format_shape(std::vector{out, in}), format_shape(matrix)));
  return false;
}

void append_names(const Layer& layer, std::vector<std::string>& names) {
  for (const TensorInfo* tensor : {layer.down, layer.up, layer.alpha}) {
    if (tensor) names.push_back(tensor->name);
  }
}

void match(const Contents& contents, const LoraTargets& targets, LoraScales& scales, LoraFile& file,
           Problems& problems) {
  const LoraLayers layers(targets);
  file.unmatched = contents.foreign;
  for (const auto& [name, layer] : contents.layers) {
    const std::string parameter(layers.find(name));
    if (parameter.empty()) {
      append_names(layer, file.unmatched);
      continue;
    }
    if (!is_pair(layer, problems) || !fits(layer, targets.matrices.at(parameter), problems)) continue;
    const std::int64_t rank = layer.down->shape[0];
    LoraPair pair{.parameter = parameter,
                  .down = *layer.down,
                  .up = *layer.up,
                  .rank = rank,
                  .factor = file.strength * scales.of(name, rank, layer.alpha)};
    const auto [entry, is_new] = file.pairs.emplace(parameter, std::move(pair));
    if (!is_new) {
      problems.unusable.push_back(fmt::format("{} and {} are both for {}", in_quotes(entry->second.down.name),
                                              in_quotes(layer.down->name), in_quotes(parameter)));
    }
  }
  std::ranges::sort(file.unmatched);
}

void read_metadata(const LoraScales& scales, LoraFile& file, Problems& problems) {
  const auto& metadata = file.checkpoint.metadata();
  for (const char* key : {"model_version", "base_model", "ss_base_model_version", "modelspec.architecture"}) {
    if (auto found = metadata.find(key); file.base_version.empty() && found != metadata.end())
      file.base_version = found->second;
  }
  if (file.base_version.empty()) file.base_version = scales.base_model();
  auto found = metadata.find("reference_downscale_factor");
  if (found == metadata.end()) return;
  const std::string& text = found->second;
  std::int64_t factor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), factor);
  if (error != std::errc() || end != text.data() + text.size() || factor < 1) {
    problems.unusable.push_back(
        fmt::format("reference_downscale_factor {} is no positive integer", in_quotes(text)));
  }
  file.reference_downscale_factor = factor;
}

void throw_if_any(const fs::path& path, const Problems& problems) {
  auto listed = [&](const std::vector<std::string>& lines) {
    return list_first(lines, kProblemsListed, "\n  ");
  };
  if (!problems.unusable.empty()) {
    throw Error(
        ErrorKind::bad_input,
        fmt::format("{}: an adapter that cannot be used\n  {}", path.string(), listed(problems.unusable)),
        "use an adapter of pairs of low rank (LoRA), whole and in one of the published layouts");
  }
  if (!problems.misshapen.empty()) {
    throw Error(
        ErrorKind::mismatch,
        fmt::format("{}: an adapter for another model\n  {}", path.string(), listed(problems.misshapen)),
        "use an adapter that was trained on this model");
  }
}

// An adapter that changes nothing is not what was asked for.
void require_pairs(const fs::path& path, const Contents& contents, const LoraFile& file) {
  if (!file.pairs.empty()) return;
  const std::size_t total = file.checkpoint.tensors().size();
  if (contents.layers.empty()) {
    throw Error(
        ErrorKind::bad_input,
        fmt::format("{}: no adapter (LoRA): none of its {} tensors is half of a pair{}", path.string(), total,
                    total == 0 ? "" : ", the first is " + in_quotes(file.unmatched.front())),
        "give the file of a LoRA");
  }
  const std::string made_for =
      file.base_version.empty() ? "" : fmt::format(" (it says it is for {})", in_quotes(file.base_version));
  throw Error(
      ErrorKind::mismatch,
      fmt::format("{}: an adapter for another model{}: 0 of {} tensors match, the first unknown is {}",
                  path.string(), made_for, total, in_quotes(file.unmatched.front())),
      "use an adapter that was trained on this model");
}

void require_number(double strength) {
  if (std::isfinite(strength)) return;
  throw Error(ErrorKind::usage, fmt::format("an adapter's strength of {} is no finite number", strength),
              "1 is what an adapter was trained for");
}

}  // namespace

LoraFile open_lora(const fs::path& path, double strength, const LoraTargets& targets) {
  require_number(strength);
  const fs::path at = file_of(path);
  LoraFile file{.checkpoint = Checkpoint::open(at), .strength = strength};
  Problems problems;
  const Contents contents = sort_out(file.checkpoint, problems);
  LoraScales scales(file.checkpoint, at, problems.unusable);
  match(contents, targets, scales, file, problems);
  read_metadata(scales, file, problems);
  throw_if_any(path, problems);
  require_pairs(path, contents, file);
  const auto by_rank = std::views::values(file.pairs) | std::views::transform(&LoraPair::rank);
  file.lowest_rank = std::ranges::min(by_rank);
  file.highest_rank = std::ranges::max(by_rank);
  return file;
}

}  // namespace sluice::weights
