#include "bytes/read/span_cursor.h"

#include <algorithm>
#include <climits>

namespace sluice::bytes {

SpanCursor::SpanCursor(std::span<const std::span<std::byte>> spans) : spans_(spans) {
  for (std::span<std::byte> span : spans) left_ += span.size();
}

std::span<const iovec> SpanCursor::next(Bytes most) {
  pieces_.clear();
  Bytes skip = filled_;
  for (std::span<std::byte> span : spans_) {
    if (most == 0 || pieces_.size() == IOV_MAX) break;
    const Bytes size = std::min<Bytes>(span.size() - skip, most);
    if (size > 0) pieces_.push_back({span.data() + skip, size});
    most -= size;
    skip = 0;
  }
  return pieces_;
}

void SpanCursor::advance(Bytes filled) {
  left_ -= filled;
  filled_ += filled;
  while (!spans_.empty() && filled_ >= spans_.front().size()) {
    filled_ -= spans_.front().size();
    spans_ = spans_.subspan(1);
  }
}

}  // namespace sluice::bytes
