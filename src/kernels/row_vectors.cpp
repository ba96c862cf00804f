#include "kernels/row_vectors.h"

#include "kernels/lanes.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sluice::kernels {

RowVectors::RowVectors(const at::Tensor& broadcast) : vectors(broadcast) {}

RowVectors::RowVectors(const at::Tensor& distinct, const at::Tensor& index)
    : vectors(distinct), index(index) {}

RowVectors RowVectors::part(std::int64_t batch, std::int64_t tokens, std::int64_t begin,
                            std::int64_t end) const {
  if (!defined()) return {};
  if (index.defined()) return {vectors, index.slice(0, batch * tokens + begin, batch * tokens + end)};
  const at::Tensor entry = vectors.size(0) == 1 ? vectors : vectors.narrow(0, batch, 1);
  return entry.size(1) == 1 ? entry : entry.slice(1, begin, end);
}

at::Tensor RowVectors::gathered(std::int64_t batch, std::int64_t tokens) const {
  return index.defined() ? vectors.index_select(0, index).unflatten(0, {batch, tokens}) : vectors;
}

template <typename T>
RowsOf<T> rows_of(const RowVectors& of, at::ScalarType dtype, std::int64_t tokens, std::int64_t width) {
  const at::Tensor& vectors = of.vectors;
  if (!vectors.defined()) return {};
  if (vectors.scalar_type() != dtype || vectors.size(-1) != width || vectors.stride(-1) != 1 ||
      vectors.dim() != (of.index.defined() ? 2 : 3))
    throw Error(ErrorKind::internal,
                fmt::format("vectors [{}] in {} for rows of {} in {}", fmt::join(vectors.sizes(), ", "),
                            at::toString(vectors.scalar_type()), width, at::toString(dtype)));
  RowsOf<T> rows{.data = static_cast<const T*>(vectors.const_data_ptr()), .tokens = tokens};
  if (of.index.defined()) {
    rows.index = of.index.const_data_ptr<std::int64_t>();
    rows.token_stride = vectors.stride(0);
  } else {
    rows.batch_stride = vectors.size(0) == 1 ? 0 : vectors.stride(0);
    rows.token_stride = vectors.size(1) == 1 ? 0 : vectors.stride(1);
  }
  return rows;
}

template RowsOf<float> rows_of(const RowVectors&, at::ScalarType, std::int64_t, std::int64_t);
template RowsOf<Bf16> rows_of(const RowVectors&, at::ScalarType, std::int64_t, std::int64_t);

}  // namespace sluice::kernels
