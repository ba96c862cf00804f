#include "models/ltx2/upsampler/clip_conv.h"
#include "models/ltx2/upsampler/clip_norm.h"
#include "models/ltx2/upsampler/growth.h"

#include "support/fixture.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace sluice::ltx2 {
namespace {

using test::all_close;

nn::Conv random_conv(at::IntArrayRef weight) {
  return {at::randn(weight) * 0.1, at::randn({weight[0]})};
}

// [F, H, W, C] and what ATen takes.
at::Tensor channels_first(const at::Tensor& clip) {
  return clip.permute({3, 0, 1, 2}).unsqueeze(0);
}
at::Tensor channels_last(const at::Tensor& batch) {
  return batch[0].permute({1, 2, 3, 0}).contiguous();
}

class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }

 private:
  int before_;
};

TEST(ClipConv, has_zeros_around_the_picture_and_the_clip) {
  at::manual_seed(1);
  const at::Tensor clip = at::randn({4, 3, 5, 6});
  const nn::Conv conv = random_conv({7, 6, 3, 3, 3});

  const at::Tensor y = clip_conv(conv, clip);

  const at::Tensor want =
      at::conv3d(channels_first(clip), conv.weight, conv.bias, /*stride=*/1, /*padding=*/1);
  EXPECT_TRUE(all_close(y, channels_last(want), {.atol = 1e-5}));
}

TEST(ClipConv, of_a_single_frame_uses_the_middle_taps_alone) {
  at::manual_seed(2);
  const at::Tensor clip = at::randn({1, 3, 4, 5});
  const nn::Conv conv = random_conv({4, 5, 3, 3, 3});

  const at::Tensor y = clip_conv(conv, clip);

  EXPECT_TRUE(
      all_close(y, clip_conv({conv.weight.select(2, 1).contiguous(), conv.bias}, clip), {.atol = 1e-5}));
}

TEST(ClipConv, takes_pictures_of_one_place_or_one_row) {
  at::manual_seed(9);
  const nn::Conv conv = random_conv({4, 5, 3, 3, 3});

  for (const at::Tensor& clip : {at::randn({1, 1, 1, 5}), at::randn({2, 1, 7, 5}), at::randn({2, 7, 1, 5})}) {
    const at::Tensor want = at::conv3d(channels_first(clip), conv.weight, conv.bias, 1, 1);
    EXPECT_TRUE(all_close(clip_conv(conv, clip), channels_last(want), {.atol = 1e-5}));
  }
}

TEST(ClipConv, in_several_pieces_gives_what_a_piece_around_each_frame_gives) {
  at::manual_seed(3);
  const at::Tensor clip = at::randn({5, 48, 64, 3});  // two frames a piece
  const nn::Conv conv = random_conv({4, 3, 3, 3, 3});
  ASSERT_EQ((ClipConvSize{.frames = 5, .height = 48, .width = 64}.piece()), 2);

  const at::Tensor y = clip_conv(conv, clip);

  const at::Tensor middle = clip_conv(conv, clip.narrow(0, 1, 3).contiguous());
  EXPECT_TRUE(at::equal(y.narrow(0, 2, 1), middle.narrow(0, 1, 1)));
  const at::Tensor want = at::conv3d(channels_first(clip), conv.weight, conv.bias, 1, 1);
  EXPECT_TRUE(all_close(y, channels_last(want), {.atol = 1e-5}));
}

TEST(ClipConv, computes_in_bf16) {
  at::manual_seed(4);
  const at::Tensor clip = at::randn({3, 4, 5, 32});
  const nn::Conv conv = random_conv({32, 32, 3, 3, 3});

  const at::Tensor y = clip_conv(conv, clip.to(at::kBFloat16));

  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  EXPECT_LT(test::error_of_max(y, clip_conv(conv, clip)), 0.01);
}

TEST(ClipNorm, equals_atens_over_the_whole_clip) {
  at::manual_seed(5);
  const at::Tensor clip = at::randn({3, 4, 5, 64}) * 3 + 1;
  const GroupNorm norm{at::randn({64}), at::randn({64})};
  const at::Tensor skip = at::randn_like(clip);
  const at::Tensor normed = at::group_norm(channels_first(clip), 32, norm.weight, norm.bias, 1e-5);

  at::Tensor y = clip.clone();
  norm_silu(norm, y, NormSpan::clip, skip);

  EXPECT_TRUE(all_close(y, at::silu(channels_last(normed) + skip), {.atol = 1e-5}));
}

TEST(ClipNorm, over_frames_treats_each_by_itself) {
  at::manual_seed(6);
  const at::Tensor clip = at::randn({3, 4, 5, 32});
  const GroupNorm norm{at::randn({32}), at::randn({32})};

  at::Tensor y = clip.clone(), frame = clip.narrow(0, 1, 1).clone();
  norm_silu(norm, y, NormSpan::frame);
  norm_silu(norm, frame, NormSpan::clip);

  EXPECT_TRUE(at::equal(y.narrow(0, 1, 1), frame));
}

TEST(ClipNorm, does_not_depend_on_the_number_of_threads) {
  at::manual_seed(7);
  const at::Tensor clip = at::randn({2, 40, 40, 32});  // several blocks of sums
  const GroupNorm norm{at::randn({32}), at::randn({32})};
  auto normed_by = [&](int threads) {
    const Threads scope(threads);
    at::Tensor y = clip.clone();
    norm_silu(norm, y, NormSpan::clip);
    return y;
  };

  EXPECT_TRUE(at::equal(normed_by(1), normed_by(3)));
}

TEST(ClipNorm, stays_finite_where_all_values_are_equal_or_large) {
  const GroupNorm norm{at::ones({32}), at::zeros({32})};
  at::Tensor equal = at::full({1, 2, 2, 32}, 1e4F), large = at::full({1, 2, 2, 32}, 1e30F);
  large.select(3, 3).fill_(-1e30F);

  norm_silu(norm, equal, NormSpan::clip);
  norm_silu(norm, large, NormSpan::clip);

  EXPECT_TRUE(all_close(equal, at::zeros_like(equal), {.atol = 1e-3}));
  EXPECT_TRUE(large.isfinite().all().item<bool>());
}

// The convolution of one centred tap copies: out channel i is in channel i / values.
nn::Conv spread(std::int64_t channels, std::int64_t values, bool in_time) {
  at::Tensor weight = at::zeros({channels * values, channels, 3, 3});
  at::Tensor bias = at::empty({channels * values});
  for (std::int64_t i = 0; i < channels * values; ++i) {
    weight[i][i / values][1][1] = 1;
    bias[i] = static_cast<float>(i % values) * 100;
  }
  if (in_time) weight = at::constant_pad_nd(weight.unsqueeze(2), {0, 0, 0, 0, 1, 1});
  return {weight, bias};
}

TEST(Grow, lays_time_row_and_column_side_by_side_and_drops_the_first_frame) {
  const at::Tensor clip = at::tensor({1.0F, 2.0F}).view({2, 1, 1, 1});
  const Growth growth{.frames = 2, .rows = 2, .columns = 2};

  const at::Tensor y = grow(spread(1, 8, true), {}, growth, clip);

  ASSERT_EQ(y.sizes(), (at::IntArrayRef{3, 2, 2, 1}));
  const at::Tensor want = at::tensor(
      {401.0F, 501.0F, 601.0F, 701.0F, 2.0F, 102.0F, 202.0F, 302.0F, 402.0F, 502.0F, 602.0F, 702.0F});
  EXPECT_TRUE(at::equal(y.flatten(), want));
}

TEST(Grow, blurs_with_the_kernel_of_the_file_and_keeps_every_second_place) {
  at::manual_seed(8);
  const Growth growth{.rows = 3, .columns = 3, .step = 2};
  const at::Tensor clip = at::randn({2, 3, 4, 5});
  const nn::Conv conv = random_conv({45, 5, 3, 3});
  const at::Tensor kernel = at::rand({1, 1, 5, 5});

  const at::Tensor y = grow(conv, kernel, growth, clip);

  const at::Tensor pictures = clip.permute({0, 3, 1, 2});
  const at::Tensor large = at::pixel_shuffle(at::conv2d(pictures, conv.weight, conv.bias, 1, 1), 3);
  const at::Tensor want = at::conv2d(large, kernel.expand({5, 1, 5, 5}), {}, 2, 2, 1, 5);
  EXPECT_TRUE(all_close(y, want.permute({0, 2, 3, 1}), {.atol = 1e-5}));
}

}  // namespace
}  // namespace sluice::ltx2
