#include "pipeline/machine_speed.h"

#include "kernels/attention.h"
#include "kernels/conv_line.h"
#include "kernels/frame_conv.h"
#include "kernels/linear.h"

#include <sluice/load.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <vector>

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

const std::byte* bytes_of(const std::vector<float>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

// Of one multiplication, with weights stored as they are computed with.
template <typename T>
double seconds_of_conv3d(at::ScalarType dtype) {
  constexpr std::int64_t kChannels = 256, kFrames = 4, kSide = 32;
  const kernels::FrameConvShape shape{
      .frames = kFrames, .height = kSide, .width = kSide, .in = kChannels, .out = kChannels};
  const at::Tensor weight = at::full({kChannels, kChannels, 27}, 0.01, dtype);
  const at::Tensor x = at::full(
      {shape.x_frames() * kSide * shape.x_width() * kernels::position_stride<T>(kChannels)}, 0.5, dtype);
  at::Tensor y = at::empty({kFrames * kSide * kSide * kChannels}, x.options());
  at::Tensor scratch = at::empty({kernels::frame_conv_scratch<T>(shape, at::get_num_threads())}, at::kByte);
  const kernels::FrameConv<T> conv{
      .shape = shape,
      .x = static_cast<const T*>(x.const_data_ptr()),
      .weight = {.format = dtype == at::kFloat ? kernels::Stored::f32 : kernels::Stored::bf16,
                 .values = static_cast<const std::byte*>(weight.const_data_ptr())},
      .y = static_cast<T*>(y.mutable_data_ptr())};
  auto* memory = static_cast<std::byte*>(scratch.mutable_data_ptr());
  return seconds_of([&] { kernels::convolve(conv, memory); }) /
         (27.0 * kChannels * kChannels * kFrames * kSide * kSide);
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
    conv3d_ =
        dtype_ == at::kFloat ? seconds_of_conv3d<float>(dtype_) : seconds_of_conv3d<kernels::Bf16>(dtype_);
  }
  return conv3d_;
}

double MachineSpeed::conv1d() {
  if (conv1d_ == 0) {
    constexpr std::int64_t kChannels = 96, kTaps = 7, kSamples = 16384;
    const std::vector<float> weights(kChannels * kChannels * kTaps, 0.01F);
    const std::vector<float> x((kSamples + kTaps - 1) * kChannels, 0.5F);
    std::vector<float> y(kSamples * kChannels);
    const kernels::LineConv conv{
        .weights = {.values = {.format = kernels::Stored::f32, .values = bytes_of(weights)},
                    .out = kChannels,
                    .in = kChannels,
                    .taps = kTaps},
        .padding = kTaps / 2};
    const kernels::LineInput input{.rows = kSamples, .x = x.data() + kTaps / 2 * kChannels};
    conv1d_ = seconds_of([&] { kernels::conv_line(conv, input, {.y = y.data()}); }) /
              (1.0 * kTaps * kChannels * kChannels * kSamples);
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
