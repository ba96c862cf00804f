#include "weights/component.h"

namespace sluice::weights {

ComponentTable whole_checkpoint(std::string name, const Checkpoint& checkpoint) {
  ComponentTable table{std::move(name), checkpoint, {}};
  for (const TensorInfo& tensor : checkpoint.tensors()) table.tensors.emplace(tensor.name, tensor);
  return table;
}

}  // namespace sluice::weights
