#include "weights/pieces.h"

#include "base/text.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <functional>
#include <numeric>

namespace sluice::weights {
namespace {

std::int64_t product(std::span<const std::int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Elements of one row.
std::int64_t columns_of(const Parameter& parameter) {
  return parameter.shape.empty() ? 1 : product(std::span(parameter.shape).subspan(1));
}

std::vector<std::int64_t> shape_of_rows(const Parameter& parameter, RowRange rows) {
  std::vector<std::int64_t> shape = parameter.shape;
  if (!shape.empty()) shape.front() = rows.count;
  return shape;
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// The run of `count` units of `unit` bytes from unit `begin` on.
TensorInfo cut(TensorInfo tensor, std::int64_t begin, std::int64_t count, Bytes unit,
               std::vector<std::int64_t> shape) {
  tensor.offset += static_cast<Bytes>(begin) * unit;
  tensor.size = static_cast<Bytes>(count) * unit;
  tensor.shape = std::move(shape);
  return tensor;
}

void append_nf4(const TensorInfo& tensor, const QuantizedTensor& quantized, const Parameter& parameter,
                std::vector<Piece>& pieces) {
  const RowRange rows = rows_of(parameter);
  if (!rows_are_whole_blocks(parameter)) {
    throw Error(ErrorKind::internal, fmt::format("rows {} to {} of '{}' cut a block of {} values", rows.begin,
                                                 rows.begin + rows.count, parameter.name, kNf4Block));
  }
  const std::int64_t first = rows.begin * columns_of(parameter), values = rows.count * columns_of(parameter);
  const std::int64_t packed = divide_up(values, 2), blocks = divide_up(values, kNf4Block);
  pieces.push_back({cut(tensor, first / 2, packed, 1, {packed}), parameter.slot});
  pieces.push_back(
      {cut(quantized.scales.value(), first / kNf4Block, blocks, sizeof(float), {blocks}), parameter.scales});
}

void append_pieces(const ComponentTable& table, const Parameter& parameter, std::vector<Piece>& pieces) {
  const TensorInfo& tensor = tensor_of(table, parameter);
  const QuantizedTensor* quantized = quantized_of(table, parameter);
  const bool widened = is_widened_vector(table, parameter);
  if (quantized && !parameter.scales && !widened) {
    throw Error(ErrorKind::internal,
                fmt::format("{}: parameter '{}' has no place for scales", table.name, parameter.name));
  }
  if (quantized && quantized->format == QuantFormat::nf4)
    return append_nf4(tensor, *quantized, parameter, pieces);
  const RowRange rows = rows_of(parameter);
  const Bytes row = static_cast<Bytes>(columns_of(parameter)) * dtype_bits(tensor.dtype) / 8;
  pieces.push_back(
      {cut(tensor, rows.begin, rows.count, row, shape_of_rows(parameter, rows)), parameter.slot, widened});
  if (quantized && quantized->scales) pieces.push_back({*quantized->scales, parameter.scales});
}

}  // namespace

const TensorInfo& tensor_of(const ComponentTable& table, const Parameter& parameter) {
  auto found = table.tensors.find(parameter.name);
  if (found == table.tensors.end()) {
    throw Error(ErrorKind::internal,
                fmt::format("{}: parameter '{}' was never accounted for", table.name, parameter.name));
  }
  return found->second;
}

const QuantizedTensor* quantized_of(const ComponentTable& table, const Parameter& parameter) {
  auto found = table.quantized.find(parameter.name);
  return found == table.quantized.end() ? nullptr : &found->second;
}

bool is_widened_vector(const ComponentTable& table, const Parameter& parameter) {
  const QuantizedTensor* quantized = quantized_of(table, parameter);
  return quantized && quantized->format == QuantFormat::fp8 && !quantized->scales && !parameter.scales &&
         tensor_of(table, parameter).shape.size() <= 1;
}

RowRange rows_of(const Parameter& parameter) {
  if (parameter.rows.count != 0) return parameter.rows;
  return {0, parameter.shape.empty() ? 1 : parameter.shape.front()};
}

bool rows_are_whole_blocks(const Parameter& parameter) {
  const RowRange rows = rows_of(parameter);
  const std::int64_t columns = columns_of(parameter), end = (rows.begin + rows.count) * columns;
  return rows.begin * columns % kNf4Block == 0 && (end % kNf4Block == 0 || end == product(parameter.shape));
}

std::vector<Piece> pieces_of(const ComponentTable& table, const ParameterGroup& group) {
  std::vector<Piece> pieces;
  pieces.reserve(group.parameters.size());
  for (const Parameter& parameter : group.parameters) append_pieces(table, parameter, pieces);
  return pieces;
}

}  // namespace sluice::weights
