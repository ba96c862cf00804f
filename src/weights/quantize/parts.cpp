#include "weights/quantize/parts.h"

#include "base/text.h"
#include "weights/quantize/encode.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace sluice::weights {
namespace {

// Below, the hand-over to another thread costs more than it saves.
constexpr Bytes kLeastPart = KiB(128);

Bytes element_size(Dtype dtype) {
  return dtype_bits(dtype) / 8;
}

[[noreturn]] void refuse(const ValuesOf& of, std::span<const std::byte> values) {
  const auto found = first_non_finite(of.tensor.dtype, values);
  if (!found) throw Error(ErrorKind::internal, "a value that is not finite was seen and is gone");
  const TensorInfo* info = of.checkpoint.find(of.tensor.name);
  const std::string file =
      (info != nullptr ? of.checkpoint.shards()[info->shard].path : of.checkpoint.path()).string();
  throw Error(
      ErrorKind::non_finite,
      fmt::format("{}: tensor {} has {} at element {} and cannot be quantized", file,
                  in_quotes(of.tensor.name), found->nan ? "NaN" : "infinity", of.first + found->element),
      "look at where the file comes from, or fetch it again");
}

// Calls part(first byte, bytes, index of the part) for runs of whole units.
template <typename Part>
void each_part(Workers& workers, std::size_t size, std::size_t unit, Part part) {
  const std::size_t units = (size + unit - 1) / unit;
  const std::size_t parts = std::clamp<std::size_t>(size / kLeastPart, 1, workers.threads());
  workers.run(parts, [&](std::size_t number) {
    const std::size_t begin = units * number / parts * unit;
    const std::size_t end = std::min(size, units * (number + 1) / parts * unit);
    if (begin < end) part(begin, end - begin, number);
  });
}

}  // namespace

float largest_of(Workers& workers, const ValuesOf& of, std::span<const std::byte> values,
                 std::span<std::byte> copy) {
  std::vector<float> largest(workers.threads(), 0);
  each_part(workers, values.size(), element_size(of.tensor.dtype),
            [&](std::size_t begin, std::size_t size, std::size_t part) {
              const auto mine = values.subspan(begin, size);
              if (!copy.empty()) std::memcpy(copy.data() + begin, mine.data(), size);
              largest[part] = largest_magnitude(of.tensor.dtype, mine);
            });
  if (!std::ranges::all_of(largest, [](float value) { return std::isfinite(value); })) refuse(of, values);
  return *std::ranges::max_element(largest);
}

void encode_f8_e4m3(Workers& workers, Dtype dtype, std::span<const std::byte> values, float scale,
                    std::span<std::byte> codes) {
  const std::size_t element = element_size(dtype);
  each_part(workers, values.size(), element, [&](std::size_t begin, std::size_t size, std::size_t) {
    encode_f8_e4m3(dtype, values.subspan(begin, size), scale, codes.subspan(begin / element, size / element));
  });
}

void encode_nf4(Workers& workers, const ValuesOf& of, std::span<const std::byte> values,
                std::span<float> absmax, std::span<std::byte> codes) {
  const std::size_t element = element_size(of.tensor.dtype), block = element * kNf4BlockValues;
  each_part(workers, values.size(), block, [&](std::size_t begin, std::size_t size, std::size_t) {
    encode_nf4(of.tensor.dtype, values.subspan(begin, size), absmax.subspan(begin / block),
               codes.subspan(begin / element / 2));
  });
  if (!std::ranges::all_of(absmax, [](float value) { return std::isfinite(value); })) refuse(of, values);
}

}  // namespace sluice::weights
