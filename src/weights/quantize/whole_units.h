#pragma once
// Bytes that come in any pieces, given on in multiples of a unit: elements or blocks of them.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace sluice::weights {

class WholeUnits {
 public:
  void begin(std::size_t unit) {
    unit_ = unit;
    begun_.clear();
  }

  // Calls visit(bytes) once or twice, or not at all.
  template <typename Visit>
  void add(std::span<const std::byte> bytes, Visit visit) {
    if (!begun_.empty()) {
      const auto missing = bytes.first(std::min(unit_ - begun_.size(), bytes.size()));
      begun_.insert(begun_.end(), missing.begin(), missing.end());
      bytes = bytes.subspan(missing.size());
      if (begun_.size() < unit_) return;
      visit(std::span<const std::byte>(begun_));
      begun_.clear();
    }
    const auto whole = bytes.first(bytes.size() / unit_ * unit_);
    if (!whole.empty()) visit(whole);
    const auto rest = bytes.subspan(whole.size());
    begun_.assign(rest.begin(), rest.end());
  }

  // What is left is less than a unit.
  template <typename Visit>
  void finish(Visit visit) {
    if (!begun_.empty()) visit(std::span<const std::byte>(begun_));
    begun_.clear();
  }

 private:
  std::size_t unit_ = 1;
  std::vector<std::byte> begun_;
};

}  // namespace sluice::weights
