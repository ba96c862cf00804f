#include "pipeline/machine_speed.h"

#include "kernels/attention.h"
#include "kernels/linear.h"
#include "nn/conv.h"

#include <sluice/load.h>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>

namespace sluice::pipeline {
namespace {

constexpr std::int64_t kWidth = 2048;     // of the weight that is multiplied with
constexpr std::int64_t kMostRows = 1024;  // more rows run at the same rate
constexpr Bytes kRead = MiB(64);

// The best of three: what disturbs makes it slower, never faster.
template <typename Work>
double seconds_of(Work work) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

kernels::Matrix matrix_of(kernels::MatrixFormat format, at::ScalarType dtype) {
  constexpr std::int64_t kCount = kWidth * kWidth;
  switch (format) {
    case kernels::MatrixFormat::fp8:
      return {at::full({kWidth, kWidth}, 0.5, dtype).to(at::kFloat8_e4m3fn), at::ones({1}), kWidth, kWidth};
    case kernels::MatrixFormat::nf4:
      return {at::full({kCount / 2}, 0x77, at::kByte), at::ones({kCount / 64}), kWidth, kWidth};
    case kernels::MatrixFormat::dense:
      break;
  }
  return at::full({kWidth, kWidth}, 0.5, dtype);
}

class Discard final : public TensorSink {
 public:
  std::span<std::byte> destination(std::size_t) override { return {}; }
  void take(std::size_t, Bytes, std::span<const std::byte>) override {}
};

// Neighbours in the file, from its middle on: what is at the start may be in the cache from opening it.
std::vector<std::string> some_tensors(const Checkpoint& checkpoint) {
  std::vector<TensorInfo> tensors(checkpoint.tensors().begin(), checkpoint.tensors().end());
  std::ranges::sort(tensors, [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.shard, a.offset) < std::pair(b.shard, b.offset);
  });
  std::vector<std::string> names;
  Bytes bytes = 0;
  for (std::size_t i = tensors.size() / 2; i < tensors.size() && bytes < kRead; ++i) {
    if (tensors[i].size > kRead) continue;
    names.push_back(tensors[i].name);
    bytes += tensors[i].size;
  }
  return names;
}

}  // namespace

double MachineSpeed::linear(std::int64_t rows, kernels::MatrixFormat format) {
  const auto wanted = static_cast<std::uint64_t>(std::clamp<std::int64_t>(rows, 1, kMostRows));
  const auto measured = static_cast<std::int64_t>(std::bit_ceil(wanted));
  auto [entry, fresh] = linear_.try_emplace({measured, format}, 0);
  if (fresh) {
    c10::InferenceMode no_graph;
    const kernels::Matrix weight = matrix_of(format, dtype_);
    const at::Tensor x = at::full({measured, kWidth}, 0.5, dtype_);
    entry->second = seconds_of([&] { kernels::linear(x, weight, {}); }) / (kWidth * kWidth);
  }
  return entry->second * static_cast<double>(rows) / static_cast<double>(measured);
}

double MachineSpeed::attention() {
  if (attention_ == 0) {
    c10::InferenceMode no_graph;
    constexpr std::int64_t kHeads = 4, kTokens = 1024, kDim = 128;
    const at::Tensor q = at::full({1, kHeads, kTokens, kDim}, 0.01, dtype_);
    attention_ = seconds_of([&] { kernels::attention(q, q, q); }) / (2.0 * kHeads * kTokens * kTokens * kDim);
  }
  return attention_;
}

double MachineSpeed::conv3d() {
  if (conv3d_ == 0) {
    c10::InferenceMode no_graph;
    constexpr std::int64_t kChannels = 256, kFrames = 4, kSide = 16;
    nn::Conv conv;
    conv.weight =
        at::full({kChannels, kChannels, 3, 3, 3}, 0.01, dtype_).contiguous(at::MemoryFormat::ChannelsLast3d);
    const at::Tensor x = at::full({1, kChannels, kFrames, kSide, kSide}, 0.5, dtype_)
                             .contiguous(at::MemoryFormat::ChannelsLast3d);
    const nn::ConvGeometry geometry{.padding = {1, 1, 1}};
    conv3d_ = seconds_of([&] { nn::conv(conv, x, geometry); }) /
              (27.0 * kChannels * kChannels * kFrames * kSide * kSide);
  }
  return conv3d_;
}

double MachineSpeed::conv1d() {
  if (conv1d_ == 0) {
    c10::InferenceMode no_graph;
    constexpr std::int64_t kChannels = 96, kTaps = 7, kSamples = 16384;
    nn::Conv conv;
    conv.weight = at::full({kChannels, kChannels, kTaps}, 0.01, at::kFloat);
    const at::Tensor x = at::full({1, kChannels, kSamples}, 0.5, at::kFloat);
    const nn::ConvGeometry geometry{.padding = {3}};
    conv1d_ =
        seconds_of([&] { nn::conv(conv, x, geometry); }) / (1.0 * kTaps * kChannels * kChannels * kSamples);
  }
  return conv1d_;
}

double MachineSpeed::stream() {
  if (stream_ == 0) {
    c10::InferenceMode no_graph;
    at::Tensor x = at::full({4 << 20}, 0.5, at::kFloat);
    stream_ = seconds_of([&] { x.mul_(1.0); }) / (2.0 * 4 * (4 << 20));
  }
  return stream_;
}

double MachineSpeed::read(const Checkpoint& checkpoint, const ReadOptions& options) {
  auto [entry, fresh] = read_.try_emplace(checkpoint.path().string(), 0);
  if (fresh) {
    const LoadPlan plan = plan_load(checkpoint, {.filter = {.include = some_tensors(checkpoint)}});
    Discard discard;
    const LoadReport report = load(plan, discard, options);
    entry->second = report.seconds / static_cast<double>(std::max<Bytes>(report.bytes, 1));
  }
  return entry->second;
}

}  // namespace sluice::pipeline
