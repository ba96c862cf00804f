#include "support/fixture.h"

#include <sluice/checkpoint.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <fstream>
#include <span>
#include <stdexcept>

namespace sluice::test {
namespace {

const at::Tensor& at_name(const TensorMap& tensors, std::string_view name) {
  auto found = tensors.find(name);
  if (found == tensors.end()) throw std::out_of_range(fmt::format("no tensor '{}'", name));
  return found->second;
}

TensorMap named(const nlohmann::json& entries, const TensorMap& io) {
  TensorMap tensors;
  for (const auto& [name, entry] : entries.items())
    tensors.emplace(name, at_name(io, entry.at("tensor").get<std::string>()));
  return tensors;
}

std::string shape_text(const at::Tensor& x) {
  return format_shape({x.sizes().data(), x.sizes().size()});
}

}  // namespace

Fixture::Fixture(std::string_view name)
    : folder_(std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/fixtures" / name) {
  std::ifstream file(folder_ / "manifest.json");
  if (!file) throw std::runtime_error(fmt::format("{}: no manifest.json", folder_.string()));
  manifest_ = nlohmann::json::parse(file);
  TensorMap io = read_tensors(folder_ / manifest_.at("io").get<std::string>());
  inputs_ = named(manifest_.at("inputs"), io);
  outputs_ = named(manifest_.at("outputs"), io);
}

const at::Tensor& Fixture::input(std::string_view name) const {
  return at_name(inputs_, name);
}

const at::Tensor& Fixture::output(std::string_view name) const {
  return at_name(outputs_, name);
}

std::vector<std::string> Fixture::output_names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : outputs_) names.push_back(name);
  return names;
}

std::filesystem::path Fixture::weights_path(std::string_view module) const {
  const nlohmann::json& weights = manifest_.at("weights");
  return folder_ / (module.empty() ? weights : weights.at(std::string(module))).get<std::string>();
}

testing::AssertionResult Fixture::matches(std::string_view output, const at::Tensor& got) const {
  const nlohmann::json& entry = manifest_.at("outputs").at(std::string(output));
  auto result = all_close(got, this->output(output),
                          {.atol = entry.at("atol").get<double>(), .rtol = entry.at("rtol").get<double>()});
  return result ? result : result << " (output '" << output << "')";
}

testing::AssertionResult all_close(const at::Tensor& got, const at::Tensor& want, Tolerance tolerance) {
  if (got.sizes() != want.sizes())
    return testing::AssertionFailure() << "shape " << shape_text(got) << ", not " << shape_text(want);
  at::Tensor g = got.to(at::kDouble);
  at::Tensor w = want.to(at::kDouble);
  at::Tensor error = (g - w).abs();
  at::Tensor within = error <= w.abs() * tolerance.rtol + tolerance.atol;  // false for NaN
  if (within.all().item<bool>()) return testing::AssertionSuccess();
  std::int64_t outside = (~within).sum().item<std::int64_t>();
  std::int64_t first = (~within).flatten().to(at::kByte).argmax().item<std::int64_t>();
  return testing::AssertionFailure() << fmt::format(
             "{} of {} elements outside atol {} rtol {}; worst error {}; first at {}: {}, not {}", outside,
             g.numel(), tolerance.atol, tolerance.rtol, error.max().item<double>(), first,
             g.flatten()[first].item<double>(), w.flatten()[first].item<double>());
}

double error_of_max(const at::Tensor& got, const at::Tensor& want) {
  if (got.sizes() != want.sizes())
    throw std::invalid_argument(fmt::format("shape {}, not {}", shape_text(got), shape_text(want)));
  at::Tensor w = want.to(at::kDouble);
  return ((got.to(at::kDouble) - w).abs().max() / w.abs().max()).item<double>();
}

weights::WeightLease TensorSource::acquire(const weights::ParameterGroup& group) {
  for (const weights::Parameter& parameter : group.parameters) {
    const at::Tensor& tensor = at_name(tensors_, parameter.name);
    if (tensor.sizes() != at::IntArrayRef(parameter.shape))
      throw std::invalid_argument(
          fmt::format("{} is {}, not {}", parameter.name, shape_text(tensor), format_shape(parameter.shape)));
    const weights::RowRange& rows = parameter.rows;
    *parameter.slot = rows.count == 0 ? tensor : tensor.narrow(0, rows.begin, rows.count);
  }
  return weights::WeightLease(group);
}

at::Tensor TensorSource::rows(const weights::Parameter& table, std::span<const std::int64_t> ids) {
  const at::Tensor places = at::tensor(at::ArrayRef<std::int64_t>(ids.data(), ids.size()));
  return at_name(tensors_, table.name).index_select(0, places);
}

std::unique_ptr<weights::WeightSource> open_weights(const std::filesystem::path& path,
                                                    const std::vector<const weights::ParameterGroup*>& groups,
                                                    const std::vector<weights::IgnoreRule>& ignore) {
  Checkpoint checkpoint = Checkpoint::open(path);
  weights::ComponentTable table = weights::whole_checkpoint("component", checkpoint);
  weights::account(table, groups, ignore);
  return weights::make_weight_source(table, std::make_shared<bytes::MappedCheckpoint>(checkpoint));
}

TensorMap converted(const TensorMap& tensors, at::ScalarType dtype) {
  TensorMap result;
  for (const auto& [name, tensor] : tensors)
    result.emplace(name, tensor.is_floating_point() ? tensor.to(dtype) : tensor);
  return result;
}

}  // namespace sluice::test
