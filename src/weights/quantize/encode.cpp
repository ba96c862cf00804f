#include "weights/quantize/encode.h"

#include "bytes/plan/float_formats.h"
#include "bytes/plan/part_copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

// This file is compiled once for each kind of vector registers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "weights/quantize/encode.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sluice::weights::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that a block is a whole number of vectors on every processor.
using F32 = hn::CappedTag<float, 16>;
using I32 = hn::RebindToSigned<F32>;
using Values = hn::Vec<F32>;
using Ints = hn::Vec<I32>;

// Loads by bytes: values of a file have any address.
template <class D>
HWY_INLINE hn::Vec<D> load_any(D d, const std::byte* from) {
#if HWY_TARGET == HWY_SCALAR  // has no vectors of several bytes
  hn::TFromD<D> value;
  std::memcpy(&value, from, sizeof value);
  return hn::Set(d, value);
#else
  const hn::Repartition<std::uint8_t, D> as_bytes;
  return hn::BitCast(d, hn::LoadU(as_bytes, reinterpret_cast<const std::uint8_t*>(from)));
#endif
}

struct FromF32 {
  static constexpr std::size_t kSize = 4;
  static HWY_INLINE Values load(const std::byte* from) { return load_any(F32(), from); }
};

struct FromBf16 {
  static constexpr std::size_t kSize = 2;
  static HWY_INLINE Values load(const std::byte* from) {
    const hn::Rebind<std::uint16_t, F32> narrow;
    const hn::RebindToUnsigned<F32> wide;
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(wide, load_any(narrow, from))));
  }
};

// Bits of magnitudes are ordered as the magnitudes are, with infinity and NaN above them.
HWY_INLINE Ints magnitude(Values values) {
  return hn::And(hn::BitCast(I32(), values), hn::Set(I32(), 0x7fffffff));
}

HWY_INLINE float largest_of(Ints magnitudes) {
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(I32(), magnitudes)));
}

// Calls visit(address) for every whole vector, and once for what is left over, padded with zeros.
template <class From, class Visit>
HWY_INLINE void each_vector(const std::byte* from, std::size_t count, Visit visit) {
  const std::size_t lanes = hn::Lanes(F32());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) visit(i, lanes, from + i * From::kSize);
  if (i == count) return;
  std::byte padded[16 * From::kSize] = {};
  std::memcpy(padded, from + i * From::kSize, (count - i) * From::kSize);
  visit(i, count - i, padded);
}

template <class From>
HWY_INLINE float largest_magnitude(const std::byte* from, std::size_t count) {
  Ints largest = hn::Zero(I32());
  each_vector<From>(from, count, [&](std::size_t, std::size_t, const std::byte* values) {
    largest = hn::Max(largest, magnitude(From::load(values)));
  });
  return largest_of(largest);
}

// As F8E4M3Format::from_f32 of a finite value, in vectors.
HWY_INLINE Ints f8_e4m3(Values values) {
  using Format = bytes::F8E4M3Format;
  constexpr auto kLeastNormal = static_cast<std::int32_t>(Format::kLeastNormal);
  constexpr auto kMagic = static_cast<std::int32_t>(Format::kLeastNormal + (Format::kShift << 23));
  constexpr auto kHalfStep = static_cast<std::int32_t>((1u << (Format::kShift - 1)) - 1);
  const I32 i32;
  const Ints sign = hn::And(hn::ShiftRight<24>(hn::BitCast(i32, values)), hn::Set(i32, 0x80));
  const Ints wide = hn::Min(magnitude(values), hn::Set(i32, static_cast<std::int32_t>(Format::kSaturated)));
  const Ints even = hn::And(hn::ShiftRight<Format::kShift>(wide), hn::Set(i32, 1));
  const Ints rounded =
      hn::Add(hn::Add(wide, hn::Set(i32, kHalfStep - static_cast<std::int32_t>(Format::kRebias))), even);
  const Values sum = hn::Add(hn::BitCast(F32(), wide), hn::BitCast(F32(), hn::Set(i32, kMagic)));
  const Ints subnormal = hn::Sub(hn::BitCast(i32, sum), hn::Set(i32, kMagic));
  const Ints code = hn::IfThenElse(hn::Lt(wide, hn::Set(i32, kLeastNormal)), subnormal,
                                   hn::ShiftRight<Format::kShift>(rounded));
  return hn::Or(sign, code);
}

template <class From>
HWY_INLINE void encode_f8_e4m3(const std::byte* from, std::size_t count, float scale, std::byte* to) {
  const hn::Rebind<std::uint8_t, F32> narrow;
  const Values divisor = hn::Set(F32(), scale);
  each_vector<From>(from, count, [&](std::size_t at, std::size_t size, const std::byte* values) {
    const auto codes = hn::DemoteTo(narrow, f8_e4m3(hn::Div(From::load(values), divisor)));
    if (size == hn::Lanes(F32())) {
      hn::StoreU(codes, narrow, reinterpret_cast<std::uint8_t*>(to + at));
    } else {
      std::uint8_t padded[16];
      hn::StoreU(codes, narrow, padded);
      std::memcpy(to + at, padded, size);
    }
  });
}

// Two codes a byte, the first in the high half.
HWY_INLINE void pack_block(const std::uint8_t* codes, std::uint8_t* to) {
  const hn::CappedTag<std::int16_t, 16> pairs;
  const hn::Rebind<std::uint8_t, decltype(pairs)> narrow;
  const std::size_t lanes = hn::Lanes(pairs);
  for (std::size_t i = 0; i < kNf4BlockValues / 2; i += lanes) {
    const auto both = load_any(pairs, reinterpret_cast<const std::byte*>(codes + 2 * i));
    const auto packed = hn::Or(hn::ShiftLeft<4>(hn::And(both, hn::Set(pairs, 0xf))), hn::ShiftRight<8>(both));
    hn::StoreU(hn::DemoteTo(narrow, packed), narrow, to + i);
  }
}

// A whole block; returns its absmax.
template <class From>
HWY_INLINE float encode_nf4_block(const std::byte* from, std::uint8_t* to) {
  const hn::Rebind<std::uint8_t, F32> narrow;
  const std::size_t lanes = hn::Lanes(F32());
  const float absmax = largest_magnitude<From>(from, kNf4BlockValues);
  const Values divisor = hn::Set(F32(), absmax > 0 ? absmax : 1);
  alignas(64) std::uint8_t codes[kNf4BlockValues];
  for (std::size_t i = 0; i < kNf4BlockValues; i += lanes) {
    const Values share = hn::Div(From::load(from + i * From::kSize), divisor);
    Ints code = hn::Zero(I32());
    for (float threshold : kNf4Thresholds) {
      const auto above = hn::Gt(share, hn::Set(F32(), threshold));
      code = hn::Sub(code, hn::VecFromMask(I32(), hn::RebindMask(I32(), above)));  // minus -1
    }
    hn::StoreU(hn::DemoteTo(narrow, code), narrow, codes + i);
  }
  pack_block(codes, to);
  return absmax;
}

template <class From>
HWY_INLINE void encode_nf4(const std::byte* from, std::size_t count, float* absmax, std::byte* to) {
  constexpr std::size_t kBlockBytes = kNf4BlockValues * From::kSize, kPacked = kNf4BlockValues / 2;
  auto* codes = reinterpret_cast<std::uint8_t*>(to);
  const std::size_t whole = count / kNf4BlockValues, rest = count % kNf4BlockValues;
  for (std::size_t i = 0; i < whole; ++i)
    absmax[i] = encode_nf4_block<From>(from + i * kBlockBytes, codes + i * kPacked);
  if (rest == 0) return;
  // Padded with zeros, whose code is the 7 of a half that is left over.
  std::byte padded[kBlockBytes] = {};
  std::uint8_t packed[kPacked];
  std::memcpy(padded, from + whole * kBlockBytes, rest * From::kSize);
  absmax[whole] = encode_nf4_block<From>(padded, packed);
  std::memcpy(codes + whole * kPacked, packed, (rest + 1) / 2);
}

float LargestF32(const std::byte* from, std::size_t count) {
  return largest_magnitude<FromF32>(from, count);
}
float LargestBf16(const std::byte* from, std::size_t count) {
  return largest_magnitude<FromBf16>(from, count);
}
void F8FromF32(const std::byte* from, std::size_t count, float scale, std::byte* to) {
  encode_f8_e4m3<FromF32>(from, count, scale, to);
}
void F8FromBf16(const std::byte* from, std::size_t count, float scale, std::byte* to) {
  encode_f8_e4m3<FromBf16>(from, count, scale, to);
}
void Nf4FromF32(const std::byte* from, std::size_t count, float* absmax, std::byte* to) {
  encode_nf4<FromF32>(from, count, absmax, to);
}
void Nf4FromBf16(const std::byte* from, std::size_t count, float* absmax, std::byte* to) {
  encode_nf4<FromBf16>(from, count, absmax, to);
}

}  // namespace sluice::weights::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::weights {
namespace {

HWY_EXPORT(LargestF32);
HWY_EXPORT(LargestBf16);
HWY_EXPORT(F8FromF32);
HWY_EXPORT(F8FromBf16);
HWY_EXPORT(Nf4FromF32);
HWY_EXPORT(Nf4FromBf16);

// Values of other formats are widened in pieces of whole blocks that stay in the cache.
constexpr std::size_t kPiece = 64 * kNf4BlockValues;

template <class Visit>
void each_widened(Dtype dtype, std::span<const std::byte> values, Visit visit) {
  const std::size_t size = dtype_bits(dtype) / 8, all = values.size() / size;
  alignas(64) std::array<float, kPiece> wide;
  for (std::size_t done = 0; done < all; done += kPiece) {
    const auto piece = std::span(wide).first(std::min(kPiece, all - done));
    bytes::cast_elements(dtype, values.subspan(done * size, piece.size() * size), Dtype::F32,
                         std::as_writable_bytes(piece));
    visit(done, std::as_bytes(piece).data(), piece.size());
  }
}

}  // namespace

float largest_magnitude(Dtype dtype, std::span<const std::byte> values) {
  if (dtype == Dtype::BF16) return HWY_DYNAMIC_DISPATCH(LargestBf16)(values.data(), values.size() / 2);
  if (dtype == Dtype::F32) return HWY_DYNAMIC_DISPATCH(LargestF32)(values.data(), values.size() / 4);
  std::uint32_t largest = 0;  // as bits: NaN is the largest
  each_widened(dtype, values, [&](std::size_t, const std::byte* wide, std::size_t count) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(HWY_DYNAMIC_DISPATCH(LargestF32)(wide, count)));
  });
  return std::bit_cast<float>(largest);
}

void encode_f8_e4m3(Dtype dtype, std::span<const std::byte> values, float scale, std::span<std::byte> codes) {
  if (dtype == Dtype::BF16) {
    HWY_DYNAMIC_DISPATCH(F8FromBf16)(values.data(), values.size() / 2, scale, codes.data());
  } else if (dtype == Dtype::F32) {
    HWY_DYNAMIC_DISPATCH(F8FromF32)(values.data(), values.size() / 4, scale, codes.data());
  } else {
    each_widened(dtype, values, [&](std::size_t at, const std::byte* wide, std::size_t count) {
      HWY_DYNAMIC_DISPATCH(F8FromF32)(wide, count, scale, codes.data() + at);
    });
  }
}

void encode_nf4(Dtype dtype, std::span<const std::byte> values, std::span<float> absmax,
                std::span<std::byte> codes) {
  if (dtype == Dtype::BF16) {
    HWY_DYNAMIC_DISPATCH(Nf4FromBf16)(values.data(), values.size() / 2, absmax.data(), codes.data());
  } else if (dtype == Dtype::F32) {
    HWY_DYNAMIC_DISPATCH(Nf4FromF32)(values.data(), values.size() / 4, absmax.data(), codes.data());
  } else {
    each_widened(dtype, values, [&](std::size_t at, const std::byte* wide, std::size_t count) {
      HWY_DYNAMIC_DISPATCH(Nf4FromF32)
      (wide, count, absmax.data() + at / kNf4BlockValues, codes.data() + at / 2);
    });
  }
}

}  // namespace sluice::weights
#endif
