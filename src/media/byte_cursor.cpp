#include "media/byte_cursor.h"

namespace sluice::media {

void ByteCursor::seek(std::size_t at) {
  ran_out_ = ran_out_ || at > bytes_.size();
  at_ = ran_out_ ? bytes_.size() : at;
}

std::string_view ByteCursor::text(std::size_t count) {
  const std::size_t from = at_;
  skip(count);
  return ran_out_ ? std::string_view{}
                  : std::string_view(reinterpret_cast<const char*>(&bytes_[from]), count);
}

std::uint32_t ByteCursor::number(std::size_t size) {
  std::uint32_t value = 0;
  std::size_t index = 0;
  for (char letter : text(size)) {
    const std::size_t shift = order_ == ByteOrder::little ? index : size - 1 - index;
    value |= std::uint32_t{static_cast<std::uint8_t>(letter)} << (8 * shift);
    ++index;
  }
  return value;
}

}  // namespace sluice::media
