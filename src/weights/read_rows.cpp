#include "weights/pieces.h"

#include "base/text.h"
#include "weights/dtype.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>
#include <map>

namespace sluice::weights {
namespace {

void check_table(const ComponentTable& table, const Parameter& parameter, const TensorInfo& tensor) {
  const QuantizedTensor* quantized = quantized_of(table, parameter);
  if (!quantized) return;
  throw Error(ErrorKind::bad_input,
              fmt::format("{}: {}: tensor {} is quantized ({}), and single rows of it are needed",
                          table.checkpoint.path().string(), table.name, in_quotes(tensor.name),
                          quantized->format == QuantFormat::fp8 ? "fp8" : "nf4"),
              "use a checkpoint whose embedding table is BF16, F16 or F32");
}

void check_ids(const TensorInfo& tensor, std::int64_t rows, std::span<const std::int64_t> ids) {
  for (std::int64_t id : ids) {
    if (id >= 0 && id < rows) continue;
    throw Error(ErrorKind::internal, fmt::format("row {} of tensor {} was asked for, which has {}", id,
                                                 in_quotes(tensor.name), rows));
  }
}

}  // namespace

RowsRead read_rows(const ComponentTable& table, const Parameter& parameter,
                   std::span<const std::int64_t> ids) {
  const TensorInfo& tensor = tensor_of(table, parameter);
  const RowRange rows = rows_of(parameter);
  check_table(table, parameter, tensor);
  check_ids(tensor, rows.count, ids);

  std::vector<std::int64_t> shape = parameter.shape;
  shape.front() = static_cast<std::int64_t>(ids.size());
  at::Tensor result = at::empty(shape, at::TensorOptions().dtype(to_scalar_type(tensor.dtype)));
  std::map<std::int64_t, std::vector<std::size_t>> places;  // by row, in the order of the file
  for (std::size_t i = 0; i < ids.size(); ++i) places[ids[i]].push_back(i);
  const std::size_t size = ids.empty() ? 0 : result.nbytes() / ids.size();
  auto* memory = static_cast<std::byte*>(result.mutable_data_ptr());
  for (const auto& [row, at] : places) {
    const Parameter one{parameter.name, parameter.shape, nullptr, nullptr, {rows.begin + row, 1}};
    ParameterGroup group{parameter.name, {one}};
    table.checkpoint.read(pieces_of(table, group).front().bytes, {memory + at.front() * size, size});
    for (std::size_t other : std::span(at).subspan(1))
      std::memcpy(memory + other * size, memory + at.front() * size, size);
  }
  return {result, places.size() * size};
}

}  // namespace sluice::weights
