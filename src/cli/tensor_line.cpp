#include "cli/tensor_line.h"

#include "base/text.h"

#include <fmt/format.h>

namespace sluice::cli {

std::string tensor_line(Dtype dtype, std::span<const std::int64_t> shape, Bytes size, std::string_view name) {
  return fmt::format("{:<8}{:<24}{:>12}  {}\n", dtype_name(dtype), format_shape(shape), format_bytes(size),
                     printable(name));
}

}  // namespace sluice::cli
