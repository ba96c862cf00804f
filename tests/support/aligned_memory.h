#pragma once
// Memory that suits direct reads of every alignment, and content for files to read into it.

#include <algorithm>
#include <cstddef>
#include <new>
#include <random>
#include <span>
#include <string>

namespace sluice::test {

class AlignedMemory {
 public:
  explicit AlignedMemory(std::size_t size)
      : bytes_(static_cast<std::byte*>(::operator new(size, kAlignment)), size) {
    std::ranges::fill(bytes_, std::byte{'?'});
  }
  AlignedMemory(const AlignedMemory&) = delete;
  AlignedMemory& operator=(const AlignedMemory&) = delete;
  ~AlignedMemory() { ::operator delete(bytes_.data(), kAlignment); }

  std::span<std::byte> bytes() const { return bytes_; }
  // What is in the first `size` bytes.
  std::string text(std::size_t size) const { return {reinterpret_cast<const char*>(bytes_.data()), size}; }

 private:
  static constexpr std::align_val_t kAlignment{65536};
  std::span<std::byte> bytes_;
};

// Noise: the same for the same size.
inline std::string noise(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

}  // namespace sluice::test
