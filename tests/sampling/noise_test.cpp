#include "sampling/noise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace sluice::sampling {
namespace {

// The numbers are torch.randn(n, generator=torch.Generator().manual_seed(seed)) of PyTorch 2.13.

TEST(Noise, below_16_elements_equals_torchs) {
  at::Tensor want = at::tensor({0x1.58c55c0000000p-2f, 0x1.07cd3a0000000p-3f, 0x1.e02dce0000000p-3f,
                                0x1.d7b8d80000000p-3f, -0x1.1f73840000000p+0f});

  EXPECT_TRUE(at::equal(NoiseSource(42).draw({5}), want));
}

TEST(Noise, from_16_elements_on_equals_torchs) {
  at::Tensor noise = NoiseSource(42).draw({20});

  at::Tensor first = at::tensor({0x1.ed4a52p+0f, 0x1.7cbea6p+0f, 0x1.cd2acep-1f, -0x1.0d81b6p+1f});
  at::Tensor last = at::tensor({-0x1.3d2904p-2f, -0x1.953522p-2f, 0x1.9b5878p-1f, -0x1.3e41c0p-1f});
  EXPECT_TRUE(at::allclose(noise.slice(0, 0, 4), first, 1e-6, 0.0))
      << "vector units may differ in the last bit";
  EXPECT_TRUE(at::allclose(noise.slice(0, 16), last, 1e-6, 0.0));
}

TEST(Noise, goes_on_where_the_last_draw_ended) {
  NoiseSource source(42);

  source.draw({5});

  at::Tensor second = source.draw({3});
  EXPECT_TRUE(at::allclose(second, at::tensor({-0.18632829f, 2.20820141f, -0.63799703f}), 0.0, 1e-7));
}

TEST(Noise, depends_on_the_seed) {
  EXPECT_FALSE(at::equal(NoiseSource(1).draw({64}), NoiseSource(2).draw({64})));
}

}  // namespace
}  // namespace sluice::sampling
