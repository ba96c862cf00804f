#include "parity/case.h"

#include <sluice/checkpoint.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sluice::parity {
namespace {

// As torch prints a dtype: "float32", "bfloat16", "int64".
std::string torch_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kByte:
      return "uint8";
    case at::kChar:
      return "int8";
    case at::kShort:
      return "int16";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    default:
      return at::toString(type);
  }
}

void add(test::TensorMap& to, const std::string& name, const TensorEntry& entry, const test::TensorMap& io) {
  auto found = io.find(entry.tensor);
  if (found == io.end()) throw MalformedCase(fmt::format("io: there is no tensor '{}'", entry.tensor));
  const at::Tensor& tensor = found->second;
  if (tensor.sizes() != at::IntArrayRef(entry.shape) || torch_name(tensor.scalar_type()) != entry.dtype)
    throw MalformedCase(fmt::format("io: '{}' is {} {}, the manifest says {} {}", entry.tensor,
                                    torch_name(tensor.scalar_type()), format_shape(tensor.sizes()),
                                    entry.dtype, format_shape(entry.shape)));
  to.emplace(name, tensor);
}

}  // namespace

Case::Case(Manifest manifest) : manifest_(std::move(manifest)) {
  test::TensorMap io = test::read_tensors(manifest_.io);
  for (const auto& [name, entry] : manifest_.inputs) add(inputs_, name, entry, io);
  for (const auto& [name, entry] : manifest_.outputs) add(outputs_, name, entry, io);
}

Case Case::part(std::string_view key) const {
  Case part = *this;
  part.manifest_.params.update(param<nlohmann::json::object_t>(key));
  return part;
}

bool Case::has_param(std::string_view key) const {
  auto found = manifest_.params.find(std::string(key));
  return found != manifest_.params.end() && !found->is_null();
}

const at::Tensor& Case::input(std::string_view name) const {
  auto found = inputs_.find(name);
  if (found == inputs_.end()) throw MalformedCase(fmt::format("manifest: there is no input '{}'", name));
  return found->second;
}

at::Tensor Case::optional_input(std::string_view name) const {
  auto found = inputs_.find(name);
  return found == inputs_.end() ? at::Tensor() : found->second;
}

const at::Tensor& Case::wanted(std::string_view name) const {
  auto found = outputs_.find(name);
  if (found == outputs_.end()) throw MalformedCase(fmt::format("manifest: there is no output '{}'", name));
  return found->second;
}

std::filesystem::path Case::file(std::string_view name) const {
  std::filesystem::path path = manifest_.folder / name;
  if (!std::filesystem::exists(path)) throw MalformedCase(fmt::format("there is no file '{}'", name));
  return path;
}

std::filesystem::path Case::weights(std::string_view module) const {
  auto found = manifest_.weights.find(module);
  if (found == manifest_.weights.end())
    throw MalformedCase(fmt::format("manifest: there are no weights of module '{}'", module));
  return found->second;
}

}  // namespace sluice::parity
