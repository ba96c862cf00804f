#include "bytes/format/writer.h"

#include <sluice/sinks.h>

#include <optional>

namespace sluice {
namespace {

class FileSink final : public TensorSink {
 public:
  explicit FileSink(bytes::SafetensorsWriter& writer) : writer_(writer) {}

  std::span<std::byte> destination(std::size_t) override { return {}; }
  // Targets come one after the other in the plan's order, which is the file's.
  void take(std::size_t, Bytes, std::span<const std::byte> bytes) override { writer_.append(bytes); }

 private:
  bytes::SafetensorsWriter& writer_;
};

std::vector<bytes::TensorSpec> specs_of(const LoadPlan& plan) {
  std::vector<bytes::TensorSpec> specs;
  for (const TargetTensor& target : plan.targets())
    specs.push_back({target.name, target.dtype, target.shape});
  return specs;
}

}  // namespace

LoadReport load_to_file(const LoadPlan& plan, const std::filesystem::path& path,
                        const std::map<std::string, std::string>& metadata, const ReadOptions& options,
                        Progress* progress, const CancelToken* cancel) {
  bytes::SafetensorsWriter writer(path, specs_of(plan), metadata);
  FileSink sink(writer);
  LoadReport report = load(plan, sink, options, progress, cancel);
  writer.finish();
  return report;
}

}  // namespace sluice
