#include "parity/model_weights.h"

#include "bytes/read_backend.h"

namespace sluice::parity {

std::unique_ptr<weights::WeightSource> open_weights(const std::string& component,
                                                    const std::filesystem::path& file,
                                                    const std::vector<const weights::ParameterGroup*>& groups,
                                                    std::span<const weights::IgnoreRule> ignore) {
  const Checkpoint checkpoint = Checkpoint::open(file);
  const weights::ComponentTable table = weights::whole_checkpoint(component, checkpoint);
  weights::account(table, groups, ignore);
  return weights::make_weight_source(table, bytes::make_backend(bytes::BackendKind::mmap, checkpoint));
}

}  // namespace sluice::parity
