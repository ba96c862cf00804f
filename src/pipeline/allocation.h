#pragma once
// Refused memory has many voices: LibTorch's allocators, oneDNN, operator new and this project's own limits.
// For callers it is Error(does_not_fit) that names the phase and what was asked for.

#include <string_view>

namespace sluice::pipeline {

// Rethrows the exception that is being handled, as Error(does_not_fit) if it tells of refused memory.
// `phase` stands in front of the message; empty: outside of any.
[[noreturn]] void rethrow_naming_refused_memory(std::string_view phase);

template <typename Work>
auto with_memory_errors(std::string_view phase, Work work) {
  try {
    return work();
  } catch (...) {
    rethrow_naming_refused_memory(phase);
  }
}

}  // namespace sluice::pipeline
