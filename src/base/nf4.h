#pragma once
// NF4 as published with QLoRA (https://arxiv.org/abs/2305.14314): sixteen values, of which each weight takes
// the nearest to its share of the largest magnitude of its block.

#include <array>
#include <cstddef>

namespace sluice {

// Values with one scale, in storage order of the whole tensor.
inline constexpr std::size_t kNf4BlockValues = 64;

inline constexpr std::array<float, 16> kNf4Values = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

}  // namespace sluice
