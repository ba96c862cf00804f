#include "kernels/group_norm.h"

#include "kernels/plain_value.h"
#include "support/cpu_path_scope.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace sluice::kernels {
namespace {

using reference::plain_value;
using reference::round_to;

template <typename T>
class Case {
 public:
  Case(std::int64_t positions, std::int64_t channels, std::int64_t groups, float offset, unsigned seed)
      : random_(seed), positions_(positions), channels_(channels), groups_(groups) {
    const auto count = static_cast<std::size_t>(positions * channels);
    values_ = drawn<T>(count, offset);
    skip_ = drawn<T>(count, 0);
    weight_ = drawn<float>(static_cast<std::size_t>(channels), 1);
    bias_ = drawn<float>(static_cast<std::size_t>(channels), 0);
  }

  // norm(positions, weights) over a copy
  template <typename Norm>
  std::vector<T> normed(const Norm& norm, bool with_skip) const {
    std::vector<T> result = values_;
    const NormedPositions<T> x = {.values = result.data(),
                                  .skip = with_skip ? skip_.data() : nullptr,
                                  .count = positions_,
                                  .channels = channels_};
    norm(x, GroupNormWeights{.weight = weight_.data(), .bias = bias_.data(), .groups = groups_, .eps = 1e-5});
    return result;
  }

 private:
  template <typename V>
  std::vector<V> drawn(std::size_t count, float offset) {
    std::normal_distribution<float> normal;
    std::vector<V> values(count);
    for (V& value : values) round_to(normal(random_) + offset, value);
    return values;
  }

  std::mt19937 random_;
  std::int64_t positions_, channels_, groups_;
  std::vector<T> values_, skip_;
  std::vector<float> weight_, bias_;
};

template <typename T>
double worst_difference(const std::vector<T>& a, const std::vector<T>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(double{plain_value(a[i])} - plain_value(b[i]));
    worst = std::max(worst, difference / std::max(1.0, std::abs(double{plain_value(b[i])})));
  }
  return worst;
}

template <typename T>
void expect_twins_agree(const Case<T>& norm, double tolerance) {
  const auto fast = [](const auto& x, const auto& weights) { group_norm_silu(x, weights); };
  const auto plain = [](const auto& x, const auto& weights) { reference::group_norm_silu(x, weights); };
  for (const bool skip : {false, true})
    EXPECT_LT(worst_difference(norm.normed(fast, skip), norm.normed(plain, skip)), tolerance);
}

TEST(GroupNorm, equals_its_plain_twin_on_every_path) {
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    SCOPED_TRACE(name(path));
    expect_twins_agree(Case<float>(1, 32, 32, 0, 1), 2e-6);  // a group is one value
    expect_twins_agree(Case<float>(37, 96, 32, 2, 2), 2e-6);
    expect_twins_agree(Case<float>(1300, 64, 32, 0, 3), 2e-6);  // several blocks of positions
    expect_twins_agree(Case<Bf16>(700, 64, 32, 1, 4), 1.0 / 128);
  }
}

TEST(GroupNorm, keeps_its_digits_where_values_hardly_differ) {
  expect_twins_agree(Case<float>(600, 64, 32, 4096, 5), 1e-5);
}

TEST(GroupNorm, gives_the_same_bits_on_any_number_of_threads) {
  const Case<float> norm(2000, 64, 32, 0, 6);
  const auto fast = [](const auto& x, const auto& weights) { group_norm_silu(x, weights); };
  const int before = at::get_num_threads();

  at::set_num_threads(1);
  const auto one = norm.normed(fast, true);
  at::set_num_threads(3);
  const auto three = norm.normed(fast, true);
  at::set_num_threads(before);

  EXPECT_EQ(one, three);
}

}  // namespace
}  // namespace sluice::kernels
