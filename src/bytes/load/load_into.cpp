#include "base/text.h"
#include "bytes/load/match_targets.h"

#include <sluice/error.h>
#include <sluice/sinks.h>

#include <fmt/format.h>

#include <vector>

namespace sluice {
namespace {

class DestinationSink final : public TensorSink {
 public:
  DestinationSink(std::span<const Destination> destinations, const bytes::MatchedTargets& matched)
      : destinations_(destinations), matched_(matched) {}

  std::span<std::byte> destination(std::size_t target) override {
    return matched_[target] ? destinations_[*matched_[target]].bytes : std::span<std::byte>();
  }
  void take(std::size_t, Bytes, std::span<const std::byte>) override {}  // a scale whose tensor is ignored

 private:
  std::span<const Destination> destinations_;
  const bytes::MatchedTargets& matched_;
};

void check_sizes(const LoadPlan& plan, std::span<const Destination> destinations,
                 const bytes::MatchedTargets& matched) {
  for (std::size_t i = 0; i < matched.size(); ++i) {
    if (!matched[i]) continue;
    const TargetTensor& tensor = plan.targets()[i];
    const Bytes size = destinations[*matched[i]].bytes.size();
    if (size == tensor.size) continue;
    throw Error(ErrorKind::usage,
                fmt::format("the destination of {} has {} bytes, its shape and dtype need {}",
                            in_quotes(tensor.name), size, tensor.size),
                "give contiguous memory of the tensor's size");
  }
}

}  // namespace

LoadReport load_into(const LoadPlan& plan, std::span<const Destination> destinations,
                     UnexpectedTensors unexpected, const ReadOptions& options, Progress* progress,
                     const CancelToken* cancel) {
  std::vector<TargetTensor> wanted;
  for (const Destination& destination : destinations)
    wanted.push_back({destination.name, destination.dtype, destination.shape});
  const bytes::MatchedTargets matched = bytes::match_targets(plan, wanted, unexpected);
  check_sizes(plan, destinations, matched);
  DestinationSink sink(destinations, matched);
  return load(bytes::without_ignored(plan, matched), sink, options, progress, cancel);
}

}  // namespace sluice
