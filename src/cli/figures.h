#pragma once
// Figures as they stand in results.

#include <sluice/units.h>

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace sluice::cli {

inline double gib_per_second(Bytes bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / static_cast<double>(GiB(1)) / seconds : 0;
}

// "1 tensor", "2 tensors"
inline std::string counted(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace sluice::cli
