#pragma once
// Numbers from the bytes of a file, one after the other.  Reading past the end gives zeros and is remembered,
// so that a parser asks once, at the end, whether all it read was there.  A view: the bytes must outlive it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::media {

enum class ByteOrder { little, big };

class ByteCursor {
 public:
  ByteCursor(std::span<const std::byte> bytes, ByteOrder order) : bytes_(bytes), order_(order) {}

  std::uint32_t u8() { return number(1); }
  std::uint32_t u16() { return number(2); }
  std::uint32_t u24() { return number(3); }
  std::uint32_t u32() { return number(4); }
  std::string_view text(std::size_t count);  // empty past the end
  void skip(std::size_t count) { seek(at_ + count); }
  void seek(std::size_t at);

  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  bool ran_out() const { return ran_out_; }
  std::span<const std::byte> rest() const { return bytes_.subspan(at_); }

 private:
  std::uint32_t number(std::size_t size);

  std::span<const std::byte> bytes_;
  ByteOrder order_;
  std::size_t at_ = 0;
  bool ran_out_ = false;
};

}  // namespace sluice::media
