#pragma once
// LibTorch reports refused memory as an error of its own kind; for callers it is Error(does_not_fit) like any
// other.

#include <sluice/error.h>

#include <c10/util/Exception.h>

#include <string_view>

namespace sluice::pipeline {

template <typename Work>
auto with_memory_errors(Work work) {
  try {
    return work();
  } catch (const c10::Error& error) {
    if (std::string_view(error.what()).find("alloc_cpu") == std::string_view::npos) throw;
    throw Error(ErrorKind::does_not_fit, "the system refused memory",
                "ask for a smaller clip, see sluice plan");
  }
}

}  // namespace sluice::pipeline
