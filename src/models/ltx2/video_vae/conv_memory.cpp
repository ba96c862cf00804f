#include "models/ltx2/video_vae/conv_memory.h"

#include <ATen/Parallel.h>

namespace sluice::ltx2 {
namespace {

// PerChannelRMSNorm's default; resnet_norm_eps is another norm's.
constexpr double kPixelNormEps = 1e-8;
constexpr std::int64_t kAlignment = 64;  // bytes

template <typename T>
ConvMemory memory_of(const ConvSize& size) {
  const std::int64_t values = size.frames * kernels::bordered_values<T>(size.picture());
  ConvMemory memory;
  memory.frames_of_clip =
      (values * static_cast<std::int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment;
  memory.frames = size.batch * memory.frames_of_clip;
  if (size.frames_out())
    memory.products = kernels::frame_conv_scratch<T>(size.shape(), at::get_num_threads());
  return memory;
}

}  // namespace

kernels::BorderedPicture ConvSize::picture() const {
  return {.height = height,
          .width = width,
          .channels = in,
          .columns = kConvTaps / 2,
          .rows = kConvTaps / 2,
          .border = padding == SpatialPadding::zeros ? kernels::Border::zeros : kernels::Border::reflect,
          .eps = kPixelNormEps};
}

kernels::FrameConvShape ConvSize::shape() const {
  return {.frames = frames_out(),
          .height = height,
          .width = width,
          .in = in,
          .out = out,
          .kernel = {kConvTaps, kConvTaps, kConvTaps},
          .rows = padding == SpatialPadding::zeros ? kernels::BorderRows::zeros : kernels::BorderRows::given};
}

ConvMemory conv_memory(const ConvSize& size, at::ScalarType dtype) {
  return dtype == at::kFloat ? memory_of<float>(size) : memory_of<kernels::Bf16>(size);
}

}  // namespace sluice::ltx2
