#include "models/ltx2/video_vae/encode_memory.h"

#include "kernels/memory_pool.h"
#include "kernels/scratch.h"
#include "models/ltx2/video_vae/small_encoder.h"
#include "support/peak_allocator.h"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <utility>

namespace sluice::ltx2 {
namespace {

struct Encode {
  nlohmann::json changes = nlohmann::json::object();
  std::int64_t frames = 17, height = 256, width = 320;  // most tensors are large enough for the pool
  at::ScalarType compute = at::kFloat;
  std::int64_t part = 17;  // pushed at once
  EncodePiece piece = {};
};

// Tensors come from the memory pool while it lives.  It begins empty: what was made before lies elsewhere.
class InPool {
 public:
  InPool() : before_(c10::GetCPUAllocator()) {
    static c10::Allocator* const pool = [] {
      kernels::install_memory_pool();
      return c10::GetCPUAllocator();
    }();
    c10::SetCPUAllocator(pool);
    kernels::begin_pool_phase(0);
  }
  ~InPool() { c10::SetCPUAllocator(before_); }
  InPool(const InPool&) = delete;
  InPool& operator=(const InPool&) = delete;

  std::int64_t touched() const { return static_cast<std::int64_t>(kernels::pool_figures().extent); }

 private:
  c10::Allocator* before_;
};

class Encoding {
 public:
  explicit Encoding(const Encode& how)
      : how_(how),
        small_(how.changes),
        source_(test::converted(small_.weights, how.compute)),
        clip_(random_frames(how.frames, how.height, how.width)) {
    kernels::release_scratch();
  }

  void run() {
    {
      VideoEncodeStream stream(
          small_.encoder, source_, how_.compute, [](const EncodedFrames&) {}, how_.piece);
      for (std::int64_t start = 0; start < how_.frames; start += how_.part) {
        const std::int64_t n = std::min(how_.part, how_.frames - start);
        stream.push(clip_.narrow(2, start, n), start + n == how_.frames ? Last::yes : Last::no);
      }
    }
    kernels::release_scratch();
  }

 private:
  Encode how_;
  SmallEncoder small_;
  test::TensorSource source_;
  at::Tensor clip_;
};

double planned(const Encode& how) {
  const auto config = VideoEncoderConfig::parse(SmallEncoder::merged(how.changes));
  return static_cast<double>(encode_memory(
      config, {.height = how.height, .width = how.width, .frames = how.frames}, how.compute, how.piece));
}

struct PeakCase {
  std::string name;
  Encode how;
};

class VideoEncodePeak : public testing::TestWithParam<PeakCase> {};

TEST_P(VideoEncodePeak, is_planned_within_ten_percent) {
  const Encode& how = GetParam().how;
  Encoding encoding(how);
  InPool pool;

  encoding.run();

EXPECT_NEAR(static_cast<double>(pool.touched()) / planned(how), 1, 0.1);
}

INSTANTIATE_TEST_SUITE_P(
    encodes, VideoEncodePeak,
    testing::Values(
        PeakCase{"picture", {.frames = 1}}, PeakCase{"f32", {}}, PeakCase{"f32_pushed_singly", {.part = 1}},
        PeakCase{"f32_single_frames", {.piece = {1}}}, PeakCase{"f32_odd_pieces", {.piece = {3}}},
        PeakCase{"f32_whole", {.piece = {17}}},
        PeakCase{"f32_pieces_longer_than_the_clip", {.frames = 9, .piece = {64}}},
        PeakCase{"bf16", {.compute = at::kBFloat16}},
        PeakCase{"bf16_single_frames", {.compute = at::kBFloat16, .piece = {1}}},
        PeakCase{"bf16_large", {.frames = 9, .height = 384, .width = 512, .compute = at::kBFloat16}},
        PeakCase{"non_causal", {.changes = {{"encoder_causal", false}}, .piece = {4}}},
        PeakCase{"reflect", {.changes = {{"encoder_spatial_padding_mode", "reflect"}}, .piece = {4}}}),
    [](const auto& info) { return info.param.name; });

// That exist at once, in bytes, and the largest of them.
std::pair<std::int64_t, std::int64_t> tensors_of(const Encode& how) {
  Encoding encoding(how);
  test::PeakAllocator allocator;
  encoding.run();
  return {allocator.peak(), allocator.largest()};
}

TEST(VideoEncodeMemory, does_not_grow_with_the_clip) {
  const Encode clip{.frames = 65, .height = 32, .width = 64, .part = 65};
  const Encode longer{.frames = 257, .height = 32, .width = 64, .part = 257};

  const auto [peak, largest] = tensors_of(clip);
  const auto [longer_peak, longer_largest] = tensors_of(longer);

  EXPECT_EQ(peak, longer_peak);
  EXPECT_EQ(largest, longer_largest);
  EXPECT_EQ(planned(clip), planned(longer));
}

TEST(VideoEncodeMemory, is_less_for_smaller_pieces_and_for_a_picture) {
  const Encode eight{}, one{.piece = {1}}, picture{.frames = 1};

  EXPECT_LT(planned(one), 0.7 * planned(eight));
  EXPECT_LT(planned(picture), planned(one));
}

}  // namespace
}  // namespace sluice::ltx2
