#pragma once
// What `sluice verify` found, as text, as JSON, and as the error that it ends with.

#include "bytes/format/audit.h"
#include "bytes/format/inventory.h"

#include <sluice/error.h>

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace sluice::cli {

struct Verified {
  bytes::Inventory inventory;
  // With --deep: one for each part of the inventory.
  std::vector<bytes::Audit> audits;
  double seconds = 0;  // of reading everything
};

// A tensor of any component by one name: "transformer/blocks.0.weight", or the tensor's own.
std::string full_tensor_name(const bytes::Inventory::Part& part, const TensorInfo& tensor);

std::string as_text(const Verified& verified);
nlohmann::json as_json(const Verified& verified);

// What is wrong with values: names the first tensors that hold NaN or infinity.
std::optional<Error> non_finite_error(const Verified& verified, const std::string& path);

}  // namespace sluice::cli
