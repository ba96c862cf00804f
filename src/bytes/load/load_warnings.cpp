#include "bytes/load/load_warnings.h"

#include "base/log.h"

#include <algorithm>

namespace sluice::bytes {

void LoadWarnings::add(const std::string& line) {
  {
    std::lock_guard lock(mutex_);
    if (std::ranges::find(lines_, line) != lines_.end()) return;
    lines_.push_back(line);
  }
  log_warning(line);
}

std::vector<std::string> LoadWarnings::lines() const {
  std::lock_guard lock(mutex_);
  return lines_;
}

}  // namespace sluice::bytes
