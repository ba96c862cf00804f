#pragma once
// SHA-256, for comparison with digests in manifests.

#include <cstddef>
#include <span>
#include <string>

namespace sluice::parity {

std::string sha256(std::span<const std::byte> bytes);  // 64 lower-case hexadecimal digits

}  // namespace sluice::parity
