#include "weights/quantize/quantized_layout.h"

#include "base/nf4.h"
#include "bytes/format/dtype.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace sluice::weights {
namespace {

// As torch names it: what the matrix was before, and is widened to.
std::string_view torch_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::BF16:
      return "bfloat16";
    case Dtype::F16:
      return "float16";
    case Dtype::F64:
      return "float64";
    default:
      return "float32";
  }
}

std::int64_t divided_up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

Bytes bytes_of(const std::vector<bytes::TensorSpec>& tensors) {
  Bytes sum = 0;
  for (const bytes::TensorSpec& tensor : tensors)
    sum += bytes::checked_size(tensor.dtype, tensor.shape).value();
  return sum;
}

Bytes bytes_of(const QuantizedSource& source) {
  return bytes_of(body_of(source)) + bytes_of(tail_of(source));
}

// Wider elements first, so that each stands where its dtype wants it.
void sort_tail(std::vector<bytes::TensorSpec>::iterator begin, std::vector<bytes::TensorSpec>::iterator end) {
  std::stable_partition(begin, end,
                        [](const bytes::TensorSpec& tensor) { return tensor.dtype == Dtype::F32; });
}

QuantizedShard make_shard(const std::vector<QuantizedSource>& sources, std::size_t first, std::size_t last) {
  QuantizedShard shard{.first = first, .last = last};
  std::vector<bytes::TensorSpec> tails;
  for (std::size_t i = first; i < last; ++i) {
    std::ranges::move(body_of(sources[i]), std::back_inserter(shard.tensors));
    std::ranges::move(tail_of(sources[i]), std::back_inserter(tails));
    shard.source_bytes += sources[i].tensor.size;
  }
  sort_tail(tails.begin(), tails.end());
  std::ranges::move(tails, std::back_inserter(shard.tensors));
  shard.data_bytes = bytes_of(shard.tensors);
  return shard;
}

std::string shard_name(const ShardNames& names, std::size_t number, std::size_t count) {
  if (count == 1 && !names.always_numbered) return names.stem + ".safetensors";
  return fmt::format("{}-{:05}-of-{:05}.safetensors", names.stem, number + 1, count);
}

}  // namespace

std::int64_t QuantizedSource::elements() const {
  std::int64_t product = 1;
  for (std::int64_t extent : tensor.shape) product *= extent;
  return product;
}

std::vector<bytes::TensorSpec> body_of(const QuantizedSource& source) {
  const TargetTensor& tensor = source.tensor;
  if (!source.format) return {{tensor.name, tensor.dtype, tensor.shape}};
  if (*source.format == QuantFormat::fp8) return {{tensor.name, Dtype::F8_E4M3, tensor.shape}};
  const std::int64_t values = source.elements();
  return {{tensor.name, Dtype::U8, {divided_up(values, 2), 1}},
          {tensor.name + ".absmax", Dtype::F32, {divided_up(values, kNf4BlockValues)}}};
}

std::vector<bytes::TensorSpec> tail_of(const QuantizedSource& source) {
  const std::string& name = source.tensor.name;
  if (!source.format) return {};
  if (*source.format == QuantFormat::fp8) return {{name + "_scale", Dtype::F32, {}}};
  const auto state_size = static_cast<std::int64_t>(nf4_quant_state(source.tensor).size());
  return {{name + ".quant_map", Dtype::F32, {static_cast<std::int64_t>(kNf4Values.size())}},
          {name + ".quant_state.bitsandbytes__nf4", Dtype::U8, {state_size}}};
}

std::string nf4_quant_state(const TargetTensor& tensor) {
  return fmt::format(R"({{"quant_type": "nf4", "blocksize": {}, "dtype": "{}", "shape": [{}]}})",
                     kNf4BlockValues, torch_name(tensor.dtype), fmt::join(tensor.shape, ", "));
}

std::size_t QuantizedLayout::quantized() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      sources, [](const QuantizedSource& source) { return source.format.has_value(); }));
}

Bytes QuantizedLayout::data_bytes() const {
  Bytes sum = 0;
  for (const QuantizedShard& shard : shards) sum += shard.data_bytes;
  return sum;
}

QuantizedLayout lay_out_quantized(std::vector<QuantizedSource> sources, Bytes shard_size,
                                  const ShardNames& names) {
  QuantizedLayout layout{.sources = std::move(sources)};
  std::size_t first = 0;
  Bytes held = 0;
  for (std::size_t i = 0; i < layout.sources.size(); ++i) {
    const Bytes size = bytes_of(layout.sources[i]);
    if (i > first && held + size > shard_size) {
      layout.shards.push_back(make_shard(layout.sources, first, i));
      first = i;
      held = 0;
    }
    held += size;
  }
  layout.shards.push_back(make_shard(layout.sources, first, layout.sources.size()));
  for (std::size_t i = 0; i < layout.shards.size(); ++i)
    layout.shards[i].name = shard_name(names, i, layout.shards.size());
  return layout;
}

}  // namespace sluice::weights
