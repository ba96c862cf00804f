#include "bytes/load/read_queue.h"

#include "support/throws_error.h"

#include <sluice/error.h>

#include <gmock/gmock.h>

#include <array>
#include <random>
#include <stdexcept>
#include <thread>

namespace sluice::bytes {
namespace {

using ::testing::HasSubstr;

struct Buffers {
  std::array<std::byte, 4> memory{};
  std::vector<std::span<std::byte>> spans(std::size_t count) {
    std::vector<std::span<std::byte>> spans;
    for (std::size_t i = 0; i < count; ++i) spans.push_back(std::span(memory).subspan(i, 1));
    return spans;
  }
};

TEST(ReadQueue, hands_out_ascending_reads_and_buffers_only_to_those_that_need_one) {
  Buffers buffers;
  ReadQueue queue({false, true}, buffers.spans(1));

  const auto first = queue.take(), second = queue.take(), third = queue.take();

  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->read, 0u);
  EXPECT_TRUE(first->buffer.empty());
  EXPECT_EQ(second->read, 1u);
  EXPECT_EQ(second->buffer.data(), buffers.memory.data());
  EXPECT_FALSE(third);
}

TEST(ReadQueue, gives_nothing_to_who_would_have_to_wait_for_a_buffer) {
  Buffers buffers;
  ReadQueue queue({true, true}, buffers.spans(1));
  const auto first = queue.try_take();

  const auto without_buffer = queue.try_take();
  queue.give_back(first->buffer);
  const auto with_buffer = queue.try_take();

  EXPECT_FALSE(without_buffer);
  ASSERT_TRUE(with_buffer);
  EXPECT_EQ(with_buffer->read, 1u);
}

TEST(ReadQueue, returns_reads_in_order_whoever_finishes_first) {
  Buffers buffers;
  ReadQueue queue({true, true}, buffers.spans(2));
  const auto first = queue.take(), second = queue.take();
  queue.done(*second);
  queue.done(*first);

  EXPECT_EQ(queue.next(nullptr)->read, 0u);
  EXPECT_EQ(queue.next(nullptr)->read, 1u);
  EXPECT_FALSE(queue.next(nullptr));
}

TEST(ReadQueue, throws_the_first_readers_error_at_the_consumer_and_ends_the_readers) {
  ReadQueue queue({false, false, false}, {});
  queue.take();
  queue.fail(std::make_exception_ptr(std::runtime_error("first")));
  queue.fail(std::make_exception_ptr(std::runtime_error("second")));

  EXPECT_THAT([&] { queue.next(nullptr); }, testing::ThrowsMessage<std::runtime_error>(HasSubstr("first")));
  EXPECT_FALSE(queue.take());
}

TEST(ReadQueue, wakes_a_reader_that_waits_for_a_buffer_when_the_consumer_stops) {
  Buffers buffers;
  ReadQueue queue({true, true}, buffers.spans(1));
  queue.take();
  bool got_one = true;
  {
    std::jthread reader([&] { got_one = queue.take().has_value(); });
    queue.stop();
  }

  EXPECT_FALSE(got_one);
}

TEST(ReadQueue, ends_the_consumers_wait_when_cancelled) {
  ReadQueue queue({false}, {});
  CancelToken cancel;
  cancel.cancel();

  EXPECT_THAT([&] { queue.next(&cancel); },
              test::ThrowsError(ErrorKind::interrupted, HasSubstr("interrupted")));
}

// Random mixes of readers, buffers and reads: every read arrives once, in order, with its own mark.
TEST(ReadQueue, never_loses_or_blocks_a_read_with_many_readers_and_few_buffers) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 50; ++round) {
    Buffers buffers;
    std::vector<bool> needs(200);
    for (std::size_t i = 0; i < needs.size(); ++i) needs[i] = random() % 2 == 0;
    ReadQueue queue(needs, buffers.spans(1 + random() % 4));
    std::vector<std::jthread> readers;
    for (unsigned i = 0; i < 1 + random() % 6; ++i) {
      readers.emplace_back([&] {
        while (auto task = queue.take()) {
          if (!task->buffer.empty()) task->buffer[0] = static_cast<std::byte>(task->read);
          queue.done(*task);
        }
      });
    }
    for (std::size_t expected = 0; expected < needs.size(); ++expected) {
      const auto task = queue.next(nullptr);
      ASSERT_TRUE(task);
      ASSERT_EQ(task->read, expected);
      ASSERT_EQ(task->buffer.empty(), !needs[expected]);
      if (!task->buffer.empty()) {
        ASSERT_EQ(task->buffer[0], static_cast<std::byte>(expected));
      }
      queue.give_back(task->buffer);
    }
    ASSERT_FALSE(queue.next(nullptr));
  }
}

}  // namespace
}  // namespace sluice::bytes
