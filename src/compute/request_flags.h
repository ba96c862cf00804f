#pragma once
// Flags of a request, and the values they take.

#include <sluice/sluice.h>

#include <CLI/CLI.hpp>

#include <string>

namespace sluice::compute {

// A request's flags, for `generate` and `plan`.  Values that need parsing are kept as text until request().
class RequestFlags {
 public:
  void add_to(CLI::App& command);

  // Parses; with --from, flags that were not given keep the video's values.  Error(usage) names flag and
  // value.
  Request request() const;

 private:
  bool given(const char* name) const { return command_->count(name) > 0; }

  CLI::App* command_ = nullptr;
  Request values_;
  std::filesystem::path from_;
  std::string seed_ = "42", fps_, sigmas_, stg_blocks_, variant_ = "auto", dtype_ = "auto", backend_ = "auto";
  GuidanceRequest guidance_, audio_guidance_;
};

ComputeDtype parse_dtype(const std::string& text);
ReadBackend parse_backend(const std::string& text);

}  // namespace sluice::compute
