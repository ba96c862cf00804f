#include "weights/quantized.h"

#include "base/nf4.h"
#include "base/text.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <span>

namespace sluice::weights {
namespace {

using nlohmann::json;

constexpr std::size_t kProblemsListed = 10;
constexpr std::size_t kValuesAtOnce = MiB(1) / sizeof(float);

class Check {
 public:
  Check(const Checkpoint& checkpoint, BlockScales blocks)
      : checkpoint_(checkpoint), blocks_(blocks), buffer_(kValuesAtOnce) {}

  void look_at(const TensorInfo& weight, const QuantizedTensor& quantized) {
    const bool blocks = quantized.format == QuantFormat::nf4;
    if (quantized.scales && (!blocks || blocks_ == BlockScales::read))
      check_scales(*quantized.scales, quantized.format);
    for (const TensorInfo& tensor : quantized.checked) {
      if (tensor.dtype == Dtype::F32) {
        check_table(tensor);
      } else {
        check_state(tensor, weight);
      }
    }
  }

  void throw_if_any(const std::string& component) const {
    if (problems_.empty()) return;
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: {}: {}", checkpoint_.path().string(), component,
                            list_first(problems_, kProblemsListed, "; ")),
                "fetch the file again, or quantize it anew from its BF16 original");
  }

 private:
  void problem(const TensorInfo& tensor, std::string_view what) {
    problems_.push_back(fmt::format("{} {}", in_quotes(tensor.name), what));
  }

  // The values from `first` on, as many as there are and as the buffer holds.
  std::span<const float> values(TensorInfo tensor, Bytes first) {
    tensor.offset += first * sizeof(float);
    tensor.size -= first * sizeof(float);
    tensor.size = std::min<Bytes>(tensor.size, kValuesAtOnce * sizeof(float));
    const std::span<float> part = std::span(buffer_).first(tensor.size / sizeof(float));
    checkpoint_.read(tensor, std::as_writable_bytes(part));
    return part;
  }

  void check_scales(const TensorInfo& scales, QuantFormat format) {
    const auto count = static_cast<Bytes>(scales.elements());
    for (Bytes first = 0; first < count; first += kValuesAtOnce) {
      const std::span<const float> part = values(scales, first);
      // A block of zeros has no largest magnitude; a scale of zero would make everything zero.
      const auto wrong = std::ranges::find_if(part, [&](float scale) {
        return !std::isfinite(scale) || scale < 0 || (scale == 0 && format == QuantFormat::fp8);
      });
      if (wrong == part.end()) continue;
      return problem(scales, fmt::format("has {} at element {}", *wrong,
                                         first + static_cast<Bytes>(wrong - part.begin())));
    }
  }

  void check_table(const TensorInfo& map) {
    const std::span<const float> codes = values(map, 0);
    if (!std::ranges::equal(codes, kNf4Values)) problem(map, "is not the published code table of nf4");
  }

  void check_state(const TensorInfo& state, const TensorInfo& weight) {
    std::string text(state.size, '\0');
    checkpoint_.read(state, std::as_writable_bytes(std::span(text)));
    const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_object()) return problem(state, "is no JSON object");
    if (parsed.contains("nested_blocksize") || parsed.contains("nested_offset"))
      return problem(state, "says double quantization, which is not read (nested_absmax)");
    if (parsed.value("quant_type", json()) != "nf4")
      return problem(state, fmt::format("says quant_type {}, this program reads nf4",
                                        printable(parsed.value("quant_type", json()).dump())));
    if (parsed.value("blocksize", json()) != kNf4BlockValues)
      return problem(state,
                     fmt::format("says blocksize {}, this program reads {}",
                                 printable(parsed.value("blocksize", json()).dump()), kNf4BlockValues));
    const json shape = parsed.value("shape", json());
    if (packed_bytes(shape) != weight.elements())
      problem(state, fmt::format("says shape {}, which does not fit the {} bytes of {}",
                                 printable(shape.dump()), weight.elements(), in_quotes(weight.name)));
  }

  // Of values of this shape; -1 where it is none.
  static std::int64_t packed_bytes(const json& shape) {
    if (!shape.is_array()) return -1;
    std::int64_t values = 1;
    for (const json& extent : shape) {
      if (!extent.is_number_unsigned()) return -1;
      if (__builtin_mul_overflow(values, extent.get<std::int64_t>(), &values)) return -1;
    }
    return values / 2 + values % 2;
  }

  const Checkpoint& checkpoint_;
  const BlockScales blocks_;
  std::vector<float> buffer_;
  std::vector<std::string> problems_;
};

}  // namespace

void check_quantized(const ComponentTable& table, BlockScales blocks) {
  if (table.quantized.empty()) return;
  Check check(table.checkpoint, blocks);
  for (const auto& [name, quantized] : table.quantized) check.look_at(table.tensors.at(name), quantized);
  check.throw_if_any(table.name);
}

}  // namespace sluice::weights
