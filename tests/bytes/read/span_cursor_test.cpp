#include "bytes/read/span_cursor.h"

#include <gmock/gmock.h>

#include <array>
#include <climits>
#include <utility>

namespace sluice::bytes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A row of memory; pieces are told by where they begin in it and how long they are.
class SpanCursorTest : public ::testing::Test {
 protected:
  using Piece = std::pair<std::ptrdiff_t, std::size_t>;

  std::span<std::byte> part(std::size_t begin, std::size_t size) {
    return std::span(memory_).subspan(begin, size);
  }
  std::vector<Piece> pieces(SpanCursor& cursor, Bytes most) {
    std::vector<Piece> pieces;
    for (const iovec& piece : cursor.next(most)) {
      pieces.emplace_back(static_cast<std::byte*>(piece.iov_base) - memory_.data(), piece.iov_len);
    }
    return pieces;
  }

 private:
  std::array<std::byte, 2000> memory_;
};

TEST_F(SpanCursorTest, offers_all_spans_that_are_not_empty) {
  const std::span<std::byte> spans[] = {part(0, 0), part(100, 10), part(7, 0), part(50, 20), part(0, 0)};
  SpanCursor cursor(spans);

  EXPECT_EQ(cursor.left(), 30u);
  EXPECT_THAT(pieces(cursor, 1000), ElementsAre(Piece(100, 10), Piece(50, 20)));
}

TEST_F(SpanCursorTest, goes_on_in_the_middle_of_a_span) {
  const std::span<std::byte> spans[] = {part(100, 10), part(50, 20), part(200, 5)};
  SpanCursor cursor(spans);

  cursor.advance(4);
  EXPECT_THAT(pieces(cursor, 1000), ElementsAre(Piece(104, 6), Piece(50, 20), Piece(200, 5)));
  cursor.advance(6);
  EXPECT_THAT(pieces(cursor, 1000), ElementsAre(Piece(50, 20), Piece(200, 5)));
  cursor.advance(22);
  EXPECT_THAT(pieces(cursor, 1000), ElementsAre(Piece(202, 3)));
  cursor.advance(3);
  EXPECT_THAT(pieces(cursor, 1000), IsEmpty());
  EXPECT_EQ(cursor.left(), 0u);
}

TEST_F(SpanCursorTest, offers_no_more_than_asked_for) {
  const std::span<std::byte> spans[] = {part(100, 10), part(50, 20)};
  SpanCursor cursor(spans);

  EXPECT_THAT(pieces(cursor, 13), ElementsAre(Piece(100, 10), Piece(50, 3)));
  EXPECT_THAT(pieces(cursor, 10), ElementsAre(Piece(100, 10)));
}

TEST_F(SpanCursorTest, offers_no_more_pieces_than_one_call_takes) {
  const std::vector<std::span<std::byte>> spans(IOV_MAX + 1, part(0, 1));
  SpanCursor cursor(spans);

  EXPECT_THAT(pieces(cursor, 10'000), SizeIs(IOV_MAX));
  cursor.advance(IOV_MAX);
  EXPECT_THAT(pieces(cursor, 10'000), SizeIs(1));
}

}  // namespace
}  // namespace sluice::bytes
