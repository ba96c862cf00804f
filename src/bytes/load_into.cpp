#include "base/text.h"
#include "bytes/load_plan_state.h"

#include <sluice/error.h>
#include <sluice/sinks.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace sluice {
namespace {

constexpr std::size_t kNamesListed = 8;

using ByName = std::map<std::string_view, const Destination*>;

// What stands against a load, by kind; names in the order of the plan or of the destinations.
struct Mismatches {
  std::vector<std::string> missing, unexpected, misshapen, mistyped, twice;

  void append(std::string& text, std::string_view what, const std::vector<std::string>& lines) const {
    if (lines.empty()) return;
    text += fmt::format("\n  {} {}: {}", lines.size(), what, list_first(lines, kNamesListed));
  }
  std::string text() const {
    std::string text;
    append(text, "missing", missing);
    append(text, "unexpected", unexpected);
    append(text, "of another shape", misshapen);
    append(text, "of another dtype", mistyped);
    append(text, "given twice", twice);
    return text;
  }
};

ByName index_destinations(std::span<const Destination> destinations, Mismatches& mismatches) {
  ByName by_name;
  for (const Destination& destination : destinations) {
    if (!by_name.emplace(destination.name, &destination).second)
      mismatches.twice.push_back(in_quotes(destination.name));
  }
  return by_name;
}

// Shapes are compared as they stand: [1, 4] does not spread over [4, 4], nor does it fit [4].
void compare(const TargetTensor& tensor, const Destination& destination, Mismatches& mismatches) {
  if (tensor.shape != destination.shape) {
    mismatches.misshapen.push_back(fmt::format("{} is {}, its destination {}", in_quotes(tensor.name),
                                               format_shape(tensor.shape), format_shape(destination.shape)));
  } else if (tensor.dtype != destination.dtype) {
    mismatches.mistyped.push_back(fmt::format("{} is {}, its destination {}", in_quotes(tensor.name),
                                              dtype_name(tensor.dtype), dtype_name(destination.dtype)));
  } else if (tensor.size != destination.bytes.size()) {
    throw Error(ErrorKind::usage,
                fmt::format("the destination of {} has {} bytes, its shape and dtype need {}",
                            in_quotes(tensor.name), destination.bytes.size(), tensor.size),
                "give contiguous memory of the tensor's size");
  }
}

// By target, nullptr for those that are ignored; Error(mismatch) that lists everything.
std::vector<const Destination*> match(const LoadPlan& plan, std::span<const Destination> destinations,
                                      UnexpectedTensors unexpected) {
  Mismatches mismatches;
  ByName left = index_destinations(destinations, mismatches);
  std::vector<const Destination*> matched;
  for (const TargetTensor& tensor : plan.targets()) {
    auto found = left.extract(tensor.name);
    matched.push_back(found ? found.mapped() : nullptr);
    if (found) {
      compare(tensor, *found.mapped(), mismatches);
    } else if (unexpected == UnexpectedTensors::refuse) {
      mismatches.unexpected.push_back(in_quotes(tensor.name));
    }
  }
  for (const Destination& destination : destinations) {
    if (left.contains(destination.name)) mismatches.missing.push_back(in_quotes(destination.name));
  }
  if (const std::string problems = mismatches.text(); !problems.empty()) {
    throw Error(ErrorKind::mismatch,
                fmt::format("{}: the checkpoint does not match its destinations{}",
                            plan.checkpoint().path().string(), problems),
                "load it into the model that it was saved from, or declare what must be renamed or cast");
  }
  return matched;
}

// The plan without the bytes of targets that nobody wants.
LoadPlan without_ignored(const LoadPlan& plan, const std::vector<const Destination*>& matched) {
  auto state = std::make_shared<bytes::PlanState>(LoadPlanAccess::state(plan));
  std::erase_if(state->ranges, [&](const bytes::WantedRange& r) { return matched[r.target] == nullptr; });
  state->read_bytes = 0;
  for (const bytes::WantedRange& range : state->ranges) state->read_bytes += range.size;
  return LoadPlanAccess::make(std::move(state));
}

class DestinationSink final : public TensorSink {
 public:
  explicit DestinationSink(std::vector<const Destination*> matched) : matched_(std::move(matched)) {}

  std::span<std::byte> destination(std::size_t target) override {
    return matched_[target] == nullptr ? std::span<std::byte>() : matched_[target]->bytes;
  }
  void take(std::size_t, Bytes, std::span<const std::byte>) override {}  // a scale whose tensor is ignored

 private:
  std::vector<const Destination*> matched_;
};

}  // namespace

LoadReport load_into(const LoadPlan& plan, std::span<const Destination> destinations,
                     UnexpectedTensors unexpected, const ReadOptions& options, Progress* progress,
                     const CancelToken* cancel) {
  const std::vector<const Destination*> matched = match(plan, destinations, unexpected);
  DestinationSink sink(matched);
  if (std::ranges::find(matched, nullptr) == matched.end())
    return load(plan, sink, options, progress, cancel);
  return load(without_ignored(plan, matched), sink, options, progress, cancel);
}

}  // namespace sluice
