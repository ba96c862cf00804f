#pragma once
// Flags of a request, and the values they take.

#include "compute/given_flags.h"
#include "compute/memory_flags.h"

#include <sluice/sluice.h>

#include <CLI/CLI.hpp>

#include <string>

namespace sluice::compute {

// How weights come into memory.
class WeightFlags {
 public:
  void add_to(CLI::App& command, const char* group = nullptr);
  // Parses; what was not given stays as it is.  Error(usage) names the value.
  void apply(ReadBackend& backend, CachePolicy& cache) const;

 private:
  std::string backend_ = "auto", cache_ = "auto";
};

// A request's flags, for `generate` and `plan`.  Values that need parsing are kept as text until request().
class RequestFlags {
 public:
  void add_to(CLI::App& command);

  // Parses; with --from, flags that were not given keep the video's values.  Error(usage) names flag and
  // value.
  Request request() const;

 private:
  bool given(const char* name) const { return command_->count(name) > 0; }
  void require_files_again() const;

  CLI::App* command_ = nullptr;
  Request values_;
  std::filesystem::path from_;
  std::string seed_ = "42", fps_, sigmas_, stg_blocks_, variant_ = "auto", dtype_ = "auto";
  WeightFlags reading_;
  MemoryFlags memory_;
  GivenFlags given_;
  GuidanceRequest guidance_, audio_guidance_;
};

ComputeDtype parse_dtype(const std::string& text);

}  // namespace sluice::compute
