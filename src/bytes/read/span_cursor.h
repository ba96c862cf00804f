#pragma once
// A walk over memory that is filled piece by piece, in order: what a call that fills several spans takes, and
// where to go on when it has filled fewer bytes than asked for, in the middle of a span too.

#include <sluice/units.h>

#include <sys/uio.h>
#include <cstddef>
#include <span>
#include <vector>

namespace sluice::bytes {

class SpanCursor {
 public:
  // The list of spans must outlive the cursor.
  explicit SpanCursor(std::span<const std::span<std::byte>> spans);

  Bytes left() const { return left_; }

  // The next memory to fill, at most `most` bytes in as many pieces as one call takes; valid until the next
  // call.
  std::span<const iovec> next(Bytes most);

  void advance(Bytes filled);  // at most left()

 private:
  std::span<const std::span<std::byte>> spans_;  // from the first that is not full
  Bytes filled_ = 0;                             // of that one
  Bytes left_ = 0;
  std::vector<iovec> pieces_;
};

}  // namespace sluice::bytes
