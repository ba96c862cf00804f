#pragma once
// XXH3-128 of bytes that come in pieces: what `xxhsum -H2` prints of a file.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace sluice::bytes {

class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;

  void reset();
  void add(std::span<const std::byte> bytes);  // where pieces end makes no difference
  std::string text() const;                    // of all that was added since reset(): 32 hexadecimal digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::bytes
