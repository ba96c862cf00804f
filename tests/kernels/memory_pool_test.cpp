#include "kernels/memory_pool.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sluice::kernels {
namespace {

class MemoryPool : public testing::Test {
 protected:
  void SetUp() override {
    install_memory_pool();
    begin_pool_phase(0);
  }
  void TearDown() override { limit_memory_pool(0); }
};

at::Tensor bytes(std::int64_t count) {
  return at::empty({count}, at::kByte);
}

TEST_F(MemoryPool, KeepsAndCountsLargeTensors) {
  {
    at::Tensor a = bytes(1 << 20), b = bytes(3 << 20);
    a.fill_(1);
    b.fill_(2);
    EXPECT_EQ(pool_figures().live, MiB(4));
  }
  EXPECT_EQ(pool_figures().live, 0U);
  EXPECT_EQ(pool_figures().peak_live, MiB(4));
  EXPECT_EQ(pool_figures().extent, MiB(4));
}

TEST_F(MemoryPool, UsesTheSameMemoryAgain) {
  const void* first = bytes(1 << 20).data_ptr();
  EXPECT_EQ(bytes(1 << 20).data_ptr(), first);
}

TEST_F(MemoryPool, RefusesWhatIsBeyondItsLimitAndGoesOn) {
  limit_memory_pool(MiB(2));
  at::Tensor held = bytes(1 << 20);
  try {
    bytes(3 << 20);
    FAIL() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    EXPECT_NE(std::string(error.what()).find("3.0 MiB"), std::string::npos) << error.what();
  }
  EXPECT_EQ(pool_figures().live, MiB(1)) << "the refused tensor takes nothing";
  EXPECT_NO_THROW(bytes(1 << 20));
}

TEST_F(MemoryPool, GivesFreePagesBackAtTheEndOfAPhase) {
  at::Tensor kept = bytes(1 << 20);
  kept.fill_(7);
  bytes(8 << 20).fill_(9);
  begin_pool_phase(0);
  EXPECT_EQ(bytes(8 << 20).sum().item<std::int64_t>(), 0) << "pages that came back from the system are zero";
  EXPECT_EQ(kept.sum().item<std::int64_t>(), 7 << 20) << "what is in use stays";
}

TEST_F(MemoryPool, ServesThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        at::Tensor x = bytes(100'000 + 1000 * t);
        x.fill_(t);
        ASSERT_EQ(x.sum().item<std::int64_t>(), t * x.numel());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool_figures().live, 0U);
}

}  // namespace
}  // namespace sluice::kernels
