#pragma once
// What memory there is, and a refusal that says so before anything is read.

#include <sluice/units.h>

#include <string_view>

namespace sluice {

// Memory that a load needs beside what the process holds, against what is available: control groups (v1 and
// v2) and MemAvailable.
struct MemoryNeed {
  Bytes targets = 0;  // 0 where the destination exists already
  Bytes pool = 0;
  Bytes staging = 0;
  double multiplier = 1;  // of the whole, for what the caller adds on top
  Bytes total() const;    // the greatest value where the sum is beyond it
};
// What this process could still take: MemAvailable, or less where a control group (v2 or v1) limits it.
Bytes available_memory();
// Error(does_not_fit) with both numbers and what the need consists of; the hint names the remedies that are
// enough: a smaller pool, or fewer tensors.  `what` stands in the message: "model.safetensors".
void require_memory(const MemoryNeed& need, Bytes available, std::string_view what);

}  // namespace sluice
