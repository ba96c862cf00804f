#include "parity/registry.h"

namespace sluice::parity {

const Runner* Registry::find(const Manifest& manifest) const {
  const Entry* best = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.component != manifest.component || !manifest.name.starts_with(entry.prefix)) continue;
    if (!best || entry.prefix.size() > best->prefix.size()) best = &entry;
  }
  return best ? &best->runner : nullptr;
}

}  // namespace sluice::parity
