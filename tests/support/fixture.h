#pragma once
// A parity case of tests/fixtures: what to build (config), how to call it (params, inputs), what must come
// out (outputs with their tolerances).  Reads one folder; holds all tensors in memory.

#include "weights/tensor_file.h"
#include "weights/weight_source.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

using weights::read_tensors;
using weights::TensorMap;

class Fixture {
 public:
  // "video_vae/decode_f1", a folder under tests/fixtures.
  explicit Fixture(std::string_view name);

  const nlohmann::json& manifest() const { return manifest_; }
  const nlohmann::json& config() const { return manifest_.at("config"); }
  const nlohmann::json& params() const { return manifest_.at("params"); }

  bool has_input(std::string_view name) const { return inputs_.contains(name); }
  const at::Tensor& input(std::string_view name) const;  // std::out_of_range if there is none
  const at::Tensor& output(std::string_view name) const;
  std::vector<std::string> output_names() const;

  // Of the case's only module; of module `module` where weights is an object.
  std::filesystem::path weights_path(std::string_view module = {}) const;

  // |got - want| <= atol + rtol · |want| for every element, in f64; shapes equal, NaN never passes.  The
  // tolerances are the manifest's.
  testing::AssertionResult matches(std::string_view output, const at::Tensor& got) const;

 private:
  std::filesystem::path folder_;
  nlohmann::json manifest_;
  TensorMap inputs_;
  TensorMap outputs_;
};

struct Tolerance {
  double atol = 0;
  double rtol = 0;
};

// The rule above, for any two tensors.
testing::AssertionResult all_close(const at::Tensor& got, const at::Tensor& want, Tolerance tolerance);

// max |got - want| / max |want|.  Shapes must be equal.
double error_of_max(const at::Tensor& got, const at::Tensor& want);

// Weights from a map in memory: what a test computed or changed.  A lease fills the slots with the map's own
// tensors, or the rows of them that the parameter takes; std::out_of_range for a name that is missing,
// std::invalid_argument for another shape.
class TensorSource final : public weights::WeightSource {
 public:
  explicit TensorSource(TensorMap tensors) : tensors_(std::move(tensors)) {}

  weights::WeightLease acquire(const weights::ParameterGroup& group) override;
  at::Tensor rows(const weights::Parameter& table, std::span<const std::int64_t> ids) override;
  void check() const override {}
  Bytes bytes_read() const override { return 0; }

 private:
  TensorMap tensors_;
};

// Weights as the program reads them: names and shapes accounted for (what `ignore` does not cover must be
// used), then through a mapping.
std::unique_ptr<weights::WeightSource> open_weights(const std::filesystem::path& path,
                                                    const std::vector<const weights::ParameterGroup*>& groups,
                                                    const std::vector<weights::IgnoreRule>& ignore = {});

// The tensors of floating point in another dtype.
TensorMap converted(const TensorMap& tensors, at::ScalarType dtype);

}  // namespace sluice::test
