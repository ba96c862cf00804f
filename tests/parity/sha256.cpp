#include "parity/sha256.h"

#include <fmt/format.h>

extern "C" {
#include <libavutil/mem.h>
#include <libavutil/sha.h>
}

#include <array>
#include <cstdint>
#include <memory>
#include <new>

namespace sluice::parity {

std::string sha256(std::span<const std::byte> bytes) {
  const std::unique_ptr<AVSHA, void (*)(void*)> hash(av_sha_alloc(), av_free);
  if (!hash) throw std::bad_alloc();
  std::array<std::uint8_t, 32> digest;
  av_sha_init(hash.get(), 256);
  av_sha_update(hash.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  av_sha_final(hash.get(), digest.data());
  std::string text;
  for (std::uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace sluice::parity
