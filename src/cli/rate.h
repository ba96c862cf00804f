#pragma once
// How fast bytes came.

#include <sluice/units.h>

namespace sluice::cli {

inline double gib_per_second(Bytes bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / static_cast<double>(GiB(1)) / seconds : 0;
}

}  // namespace sluice::cli
