#pragma once
// How a checkpoint's bytes are read, as flags.

#include <sluice/read_options.h>

#include <CLI/CLI.hpp>

#include <string>

namespace sluice::cli {

class ReadFlags {
 public:
  void add_to(CLI::App& command);

  // Error(usage) for values outside the limits of read_options.h.
  ReadOptions options() const;

 private:
  ReadOptions values_;
  std::string backend_ = "auto", cache_ = "auto", chunk_, pool_;
};

}  // namespace sluice::cli
