#include "weights/quantized.h"

#include "base/nf4.h"
#include "base/text.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

namespace sluice::weights {
namespace {

constexpr std::size_t kProblemsListed = 10;

constexpr std::string_view kWeight = ".weight";

// What stands behind the name of an nf4 weight.
constexpr std::string_view kAbsmax = ".absmax";
constexpr std::string_view kQuantMap = ".quant_map";
constexpr std::string_view kQuantState = ".quant_state.bitsandbytes__";
constexpr std::string_view kNested = ".nested_";

constexpr Bytes kLargestState = KiB(64);

// "L" of "L.weight_scale" and "L.scale_weight", and of the scales of inputs; empty for other names.
std::string_view layer_before(std::string_view name, std::string_view ending) {
  return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : std::string_view();
}

bool is_weight_scale(std::string_view name) {
  return name.ends_with(".weight_scale") || name.ends_with(".scale_weight");
}

std::string_view layer_of_input_scale(std::string_view name) {
  const std::string_view layer = layer_before(name, ".input_scale");
  return layer.empty() ? layer_before(name, ".scale_input") : layer;
}

bool has_one_element(const TensorInfo& tensor) {
  return tensor.shape.size() <= 1 && tensor.elements() == 1;
}

std::string as_stored(const TensorInfo& tensor) {
  return fmt::format("{} {}", dtype_name(tensor.dtype), format_shape(tensor.shape));
}

class Gathering {
 public:
  explicit Gathering(ComponentTable& table) : table_(table) {}

  std::vector<std::string> run() {
    drop_markers();
    gather_nf4();
    gather_fp8();
    refuse_left_over();
    throw_if_any();
    return warnings_;
  }

 private:
  using Tensors = decltype(ComponentTable::tensors);

  const TensorInfo* find(const std::string& name) const {
    auto found = table_.tensors.find(name);
    return found == table_.tensors.end() ? nullptr : &found->second;
  }

  // Takes a tensor out of the table.
  std::optional<TensorInfo> take(const std::string& name) {
    auto found = table_.tensors.extract(name);
    return found.empty() ? std::nullopt : std::optional(std::move(found.mapped()));
  }

  void problem(const TensorInfo& tensor, std::string_view what) {
    problems_.push_back(fmt::format("{} {}", in_quotes(tensor.name), what));
  }

  std::vector<std::string> names_where(auto&& predicate) const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : table_.tensors) {
      if (predicate(name, tensor)) names.push_back(name);
    }
    return names;
  }

  void drop_markers() {
    std::erase_if(table_.tensors, [](const auto& entry) { return is_quantization_marker(entry.second); });
  }

  void gather_nf4() {
    std::map<std::string, std::vector<std::string>> companions;  // by weight
    for (const auto& [name, tensor] : table_.tensors) {
      for (std::string_view part : {kAbsmax, kQuantMap, kQuantState, kNested}) {
        const std::size_t at = name.rfind(part);
        const bool at_end = part == kAbsmax || part == kQuantMap;
        if (at == std::string::npos || at == 0 || (at_end && at + part.size() != name.size())) continue;
        companions[name.substr(0, at)].push_back(name);
        break;
      }
    }
    for (const auto& [weight, names] : companions) gather_nf4(weight, names);
  }

  void gather_nf4(const std::string& weight, const std::vector<std::string>& names) {
    const TensorInfo* values = find(weight);
    if (values == nullptr) return problem(*find(names.front()), "has no weight that it belongs to");
    const TensorInfo tensor = *values;
    std::optional<TensorInfo> absmax = take(weight + std::string(kAbsmax));
    std::optional<TensorInfo> map = take(weight + std::string(kQuantMap));
    std::optional<TensorInfo> state = take(weight + std::string(kQuantState) + "nf4");
    for (const std::string& name : names) {
      const std::optional<TensorInfo> other = take(name);
      if (!other) continue;
      const bool nested = name.substr(weight.size()).starts_with(kNested);
      return problem(*other, nested ? "belongs to double quantization, which is not read (nested_absmax)"
                                    : "is of another type of quantization than nf4");
    }
    if (std::string wrong = why_not_nf4(tensor, absmax, map, state); !wrong.empty())
      return problem(tensor, wrong);
    table_.quantized[weight] = {QuantFormat::nf4, std::move(absmax), {std::move(*map), std::move(*state)}};
  }

  static std::string why_not_nf4(const TensorInfo& weight, const std::optional<TensorInfo>& absmax,
                                 const std::optional<TensorInfo>& map,
                                 const std::optional<TensorInfo>& state) {
    if (!absmax) return "has no absmax beside it";
    if (!map) return "has no quant_map beside it";
    if (!state) return "has no quant_state.bitsandbytes__nf4 beside it";
    if (weight.dtype != Dtype::U8)
      return fmt::format("has an absmax beside it, but is {}", as_stored(weight));
    const bool column = weight.shape.size() == 2 && weight.shape[1] == 1;
    if (weight.shape.size() != 1 && !column)
      return fmt::format("is {}, where nf4 has [bytes, 1]", format_shape(weight.shape));
    if (absmax->dtype == Dtype::U8)
      return "has an absmax that is U8: double quantization is not read (nested_absmax)";
    const std::int64_t blocks = (weight.elements() + 31) / 32;  // two values a byte
    if (absmax->dtype != Dtype::F32 || absmax->shape != std::vector{blocks}) {
      return fmt::format("has {} bytes, which need an absmax of F32 [{}], but it is {}", weight.elements(),
                         blocks, as_stored(*absmax));
    }
    if (map->dtype != Dtype::F32 || map->elements() != static_cast<std::int64_t>(kNf4Values.size()))
      return fmt::format("has a quant_map that is {} instead of F32 [16]", as_stored(*map));
    if (state->dtype != Dtype::U8 || state->size == 0 || state->size > kLargestState)
      return fmt::format("has a quant_state that is {}", as_stored(*state));
    return {};
  }

  void gather_fp8() {
    std::size_t unscaled = 0;
    const bool scales_exist = std::ranges::any_of(
        table_.checkpoint.tensors(), [](const TensorInfo& tensor) { return is_weight_scale(tensor.name); });
    for (const std::string& name : names_where(
             [](std::string_view, const TensorInfo& tensor) { return tensor.dtype == Dtype::F8_E4M3; })) {
      const TensorInfo tensor = *find(name);
      std::optional<TensorInfo> scale = scale_of(name, tensor);
      if (!scale && scales_exist) {
        problem(tensor, "is fp8 without a scale, while others have one");
      } else {
        unscaled += scale ? 0 : 1;
        table_.quantized[name] = {QuantFormat::fp8, std::move(scale), {}};
      }
    }
    if (unscaled > 0) {
      warnings_.push_back(
          fmt::format("{}: {}: {} fp8 tensors, and no scale in the whole checkpoint: read as scale 1",
                      table_.checkpoint.path().string(), table_.name, unscaled));
    }
  }

  // Under either name; both together are a problem.
  std::optional<TensorInfo> scale_of(const std::string& name, const TensorInfo& tensor) {
    if (!name.ends_with(kWeight)) return std::nullopt;
    const std::string layer = name.substr(0, name.size() - kWeight.size());
    std::optional<TensorInfo> scale = take(layer + ".weight_scale"), older = take(layer + ".scale_weight");
    if (scale && older) problem(tensor, "has two scales, weight_scale and scale_weight");
    if (!scale) scale = std::move(older);
    if (scale && (scale->dtype != Dtype::F32 || !has_one_element(*scale)))
      problem(*scale, fmt::format("is {}: a scale is one F32", as_stored(*scale)));
    return scale;
  }

  // What belongs to weights that are not there, or not quantized; scales of inputs are not used.
  void refuse_left_over() {
    for (const std::string& name :
         names_where([](std::string_view name, const TensorInfo&) { return is_weight_scale(name); }))
      problem(*find(name), "is a scale without a weight in fp8");
    for (const std::string& name : names_where(
             [](std::string_view name, const TensorInfo&) { return !layer_of_input_scale(name).empty(); })) {
      const TensorInfo scale = take(name).value();
      if (!find(std::string(layer_of_input_scale(name)) + std::string(kWeight)))
        problem(scale, "is a scale without its weight");
    }
  }

  void throw_if_any() {
    if (problems_.empty()) return;
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: {}: {}", table_.checkpoint.path().string(), table_.name,
                            list_first(problems_, kProblemsListed, "; ")),
                "fetch the file again, or quantize it anew from its BF16 original");
  }

  ComponentTable& table_;
  std::vector<std::string> problems_, warnings_;
};

}  // namespace

bool is_quantization_marker(const TensorInfo& tensor) {
  const std::string_view name = tensor.name;
  return (name == "scaled_fp8" || name.ends_with(".scaled_fp8")) && tensor.elements() <= 2;
}

std::vector<std::string> gather_quantized(ComponentTable& table) {
  return Gathering(table).run();
}

}  // namespace sluice::weights
