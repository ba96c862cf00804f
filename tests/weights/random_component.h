#pragma once
// A component for tests of sources: random groups over a random file.

#include "support/synthetic_file.h"
#include "weights/component.h"
#include "weights/tensor_file.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace sluice::weights {

inline std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// Random groups over a random file: matrices of any dtype and size, quantized ones, rows of a shared matrix,
// tensors at odd addresses.
class Component {
 public:
  explicit Component(std::mt19937& random, std::size_t groups = 0) : random_(random) {
    if (groups == 0) groups = 1 + random() % 7;
    test::SyntheticFile file;
    for (std::size_t i = 0; i < groups; ++i) add_group(file, i);
    add_shared(file);
    file.write_to(path);
    table = whole_checkpoint("component", Checkpoint::open(path));
    for (const auto& [weight, format] : quantized_) quantize(weight, format);
    values = read_tensors(path);
  }

  std::vector<const ParameterGroup*> order() const {
    std::vector<const ParameterGroup*> order;
    for (const ParameterGroup& group : groups) order.push_back(&group);
    return order;
  }

  // Every leased tensor of the group has the file's bytes.
  ::testing::AssertionResult holds(std::size_t group) const {
    for (const Expected& expected : expected_.at(group)) {
      const std::string_view wanted =
          bytes_of(values.at(expected.tensor)).substr(expected.offset, expected.size);
      if (expected.slot->defined() && bytes_of(*expected.slot) == wanted) continue;
      return ::testing::AssertionFailure() << groups[group].name << ": " << expected.tensor;
    }
    return ::testing::AssertionSuccess();
  }

  test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.safetensors";
  ComponentTable table;
  TensorMap values;
  std::deque<ParameterGroup> groups;

 private:
  struct Expected {
    std::string tensor;
    Bytes offset, size;
    const at::Tensor* slot;
  };

  at::Tensor& slot() { return slots_.emplace_back(); }

  void expect(const std::string& tensor, const at::Tensor& slot, Bytes size, Bytes offset = 0) {
    expected_.back().push_back({tensor, offset, size, &slot});
  }

  void add_group(test::SyntheticFile& file, std::size_t index) {
    groups.push_back({fmt::format("group {}", index), {}});
    expected_.emplace_back();
    const ParameterScope scope(groups.back(), std::to_string(index));
    // Some groups are small, and so stay.
    const std::int64_t scale = random_() % 4 == 0 ? 1 : 40;
    for (std::size_t i = 0, count = 1 + random_() % 4; i < count; ++i) {
      const std::string name = std::to_string(i), full = fmt::format("{}.{}", index, i);
      const std::int64_t rows = 1 + static_cast<std::int64_t>(random_() % 50) * scale;
      if (random_() % 3 == 0)
        file.tensor(full + ".odd", Dtype::U8, {1 + static_cast<std::int64_t>(random_() % 9)});
      at::Tensor& values = slot();
      at::Tensor& scales = slot();
      switch (random_() % 4) {
        case 0:
          file.tensor(full, Dtype::F32, {rows, 30});
          scope.add(name, values, {rows, 30});
          expect(full, values, static_cast<Bytes>(rows) * 120);
          break;
        case 1:
          file.tensor(full, Dtype::BF16, {rows, 30});
          scope.add_matrix(name, values, scales, {rows, 30});
          expect(full, values, static_cast<Bytes>(rows) * 60);
          break;
        case 2:
          file.tensor(full, Dtype::F8_E4M3, {rows, 33}).tensor(full + ".scale", Dtype::F32, {});
          scope.add_matrix(name, values, scales, {rows, 33});
          quantized_[full] = QuantFormat::fp8;
          expect(full, values, static_cast<Bytes>(rows) * 33);
          expect(full + ".scale", scales, 4);
          break;
        default:
          file.tensor(full, Dtype::U8, {rows * 32, 1}).tensor(full + ".scale", Dtype::F32, {rows});
          scope.add_matrix(name, values, scales, {rows, 64});
          quantized_[full] = QuantFormat::nf4;
          expect(full, values, static_cast<Bytes>(rows) * 32);
          expect(full + ".scale", scales, static_cast<Bytes>(rows) * 4);
      }
    }
  }

  // Each group takes seven rows of it.
  void add_shared(test::SyntheticFile& file) {
    const auto rows = static_cast<std::int64_t>(groups.size()) * 7;
    file.tensor("shared", Dtype::U8, {rows * 32, 1}).tensor("shared.scale", Dtype::F32, {rows});
    quantized_["shared"] = QuantFormat::nf4;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      at::Tensor& values = slot();
      at::Tensor& scales = slot();
      const RowRange range{static_cast<std::int64_t>(i) * 7, 7};
      ParameterScope(groups[i]).add_matrix("shared", values, scales, {rows, 64}, range);
      expected_[i].push_back({"shared", i * 7 * 32, 7 * 32, &values});
      expected_[i].push_back({"shared.scale", i * 7 * 4, 7 * 4, &scales});
    }
  }

  void quantize(const std::string& weight, QuantFormat format) {
    table.quantized[weight] = {format, table.tensors.at(weight + ".scale"), {}};
  }

  std::mt19937& random_;
  std::deque<at::Tensor> slots_;
  std::map<std::string, QuantFormat> quantized_;
  std::vector<std::vector<Expected>> expected_;
};

}  // namespace sluice::weights
