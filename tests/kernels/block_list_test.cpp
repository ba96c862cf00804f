#include "kernels/block_list.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace sluice::kernels {
namespace {

TEST(BlockList, GivesTheLowestPlaceThatIsLargeEnough) {
  BlockList list(4096);
  const auto first = list.take(1000), second = list.take(64), third = list.take(500);
  EXPECT_EQ(first, 0U);
  EXPECT_EQ(second, 1024U);
  EXPECT_EQ(third, 1088U);
  list.give_back(*first);
  EXPECT_EQ(list.take(1025), 1600U) << "the hole of 1024 bytes is too small";
  EXPECT_EQ(list.take(1024), 0U);
}

TEST(BlockList, JoinsFreeNeighboursOnBothSides) {
  BlockList list(192);
  for (Bytes offset : {0, 64, 128}) EXPECT_EQ(list.take(64), offset);
  EXPECT_EQ(list.take(1), std::nullopt);
  list.give_back(0);
  list.give_back(128);
  EXPECT_EQ(list.take(128), std::nullopt) << "two parts that do not touch";
  list.give_back(64);
  EXPECT_EQ(list.take(192), 0U);
}

TEST(BlockList, CountsWhatIsTakenAndHowFarItReached) {
  BlockList list(1 << 20);
  const auto a = list.take(100), b = list.take(100);
  EXPECT_EQ(list.live(), 256U);
  list.give_back(*b);
  EXPECT_EQ(list.live(), 128U);
  EXPECT_EQ(list.extent(), 256U) << "the highest there ever was";
  list.forget_extent();
  EXPECT_EQ(list.extent(), 128U);
  list.give_back(*a);
}

TEST(BlockList, RefusesWhatCannotBeWithoutOverflow) {
  BlockList list(1024);
  EXPECT_EQ(list.take(~Bytes{0}), std::nullopt);
  EXPECT_EQ(list.take(1025), std::nullopt);
  EXPECT_EQ(BlockList(0).take(1), std::nullopt);
}

TEST(BlockList, NeverHandsOutOverlappingBlocks) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  BlockList list(1 << 16);
  struct Block {
    Bytes offset, size;
  };
  std::vector<Block> taken;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0 && !taken.empty()) {
      const std::size_t which = random() % taken.size();
      list.give_back(taken[which].offset);
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
      continue;
    }
    const Bytes size = 1 + random() % 3000;
    const auto offset = list.take(size);
    if (!offset) continue;
    ASSERT_LE(*offset + size, Bytes{1} << 16);
    for (const Block& other : taken)
      ASSERT_TRUE(*offset + size <= other.offset || other.offset + other.size <= *offset);
    taken.push_back({*offset, size});
  }
  for (const Block& block : taken) list.give_back(block.offset);
  EXPECT_EQ(list.live(), 0U);
  EXPECT_EQ(list.take(1 << 16), 0U) << "all free parts have joined again";
}

}  // namespace
}  // namespace sluice::kernels
