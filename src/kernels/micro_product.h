#pragma once
// C (+)= Σ over segments of A_s · B_s, with the sums of up to twelve rows and 32 columns in registers: what
// linear layers, attention and convolutions are made of.  A lies where it lies, rows at a stride; a segment
// is another place of A with the next part of B: the taps of a convolution, whose rows are neighbouring
// positions.  B is packed by panels of columns in words of 4 bytes, one f32 or two bf16 that belong to
// neighbouring values of A's row.
//
// f32 sums.  In bf16 every product is exact; where the processor multiplies pairs (avx512_bf16, amx), a
// pair's sum may be rounded once and subnormal values may count as zero.  The sum of a place runs over
// segments and depth in order, whatever else is computed beside it.

#include "kernels/lanes.h"

#include <cstdint>

namespace sluice::kernels {

inline constexpr std::int64_t kPanelColumns = 32;  // of a whole panel; the last one of a matrix may have 16

template <typename T>
inline constexpr std::int64_t kWordValues = 4 / static_cast<std::int64_t>(sizeof(T));

template <typename T>  // float or Bf16
struct MicroProduct {
  const T* a = nullptr;       // row 0 of segment 0; any address
  std::int64_t a_stride = 0;  // values from one row to the next
  const std::int64_t* segments =
      nullptr;  // values from a to each segment's row 0; nullptr: one segment, at a
  std::int64_t segment_count = 1;
  std::int64_t depth = 0;                 // values of a row in one segment; a multiple of kWordValues
  const T* b = nullptr;                   // [segment][depth / kWordValues][columns][kWordValues]; any address
  std::int64_t columns = kPanelColumns;   // 16 or 32
  float* c = nullptr;                     // [row][columns]
  std::int64_t c_stride = kPanelColumns;  // values from one row to the next
  bool add = false;                       // to what is in c
};

void multiply(const MicroProduct<float>& product, std::int64_t rows);
void multiply(const MicroProduct<Bf16>& product, std::int64_t rows);

// At the end of a thread's products: lets go of the processor's tile registers where they are used.
void end_products();

// Columns of the panel that begins at `column` of so many: 32, or 16 where no more are left.  Places of a
// panel behind the last column hold zeros.
constexpr std::int64_t panel_columns(std::int64_t column, std::int64_t columns) {
  return columns - column > kPanelColumns / 2 ? kPanelColumns : kPanelColumns / 2;
}

namespace onednn {
// What the path amx takes: oneDNN's small products, which know its tiles.  Runs, slower, on others with
// AVX-512.
void multiply(const MicroProduct<Bf16>& product, std::int64_t rows);
}  // namespace onednn

namespace reference {
// The plain twin: value by value, in order.
void multiply(const MicroProduct<float>& product, std::int64_t rows);
void multiply(const MicroProduct<Bf16>& product, std::int64_t rows);
}  // namespace reference

}  // namespace sluice::kernels
