#pragma once
// The unit in which the system holds files and memory.

#include <sluice/units.h>

#include <unistd.h>

namespace sluice::bytes {

inline Bytes page_size() {
  static const auto size = static_cast<Bytes>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace sluice::bytes
