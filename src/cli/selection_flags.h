#pragma once
// Which tensors are loaded and what becomes of them, as flags: filters, ranks, transforms.  Transforms apply
// in the order of the command line.

#include <sluice/load.h>

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace sluice::cli {

class SelectionFlags {
 public:
  // The flags write into this object while they are parsed: it must stay where it is.
  void add_to(CLI::App& command);

  LoadRequest request() const;

 private:
  void add_filters(CLI::App& command);
  void add_ranks(CLI::App& command);
  void add_transforms(CLI::App& command);

  LoadRequest request_;
  std::vector<std::string> rows_, columns_;
};

}  // namespace sluice::cli
