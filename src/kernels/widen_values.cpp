#include "kernels/widen_values.h"

#include "base/nf4.h"

#include <algorithm>
#include <array>
#include <cstring>

// This file is compiled once for each kind of vector registers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/widen_values.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // has no vectors of several bytes

void WidenToF32(const StoredValues& from, std::int64_t first, std::int64_t count, float* to) {
  reference::widen_values(from, first, count, to);
}
void WidenToBf16(const StoredValues& from, std::int64_t first, std::int64_t count, Bf16* to) {
  reference::widen_values(from, first, count, to);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that a block of 64 is a whole number of vectors on every processor.
using F32 = hn::CappedTag<float, 16>;
using U32 = hn::RebindToUnsigned<F32>;
using Values = hn::Vec<F32>;
using Bits = hn::Vec<U32>;
constexpr std::size_t kMostLanes = 16;

// Loads by bytes: values of a file have any address.
template <class D>
HWY_INLINE hn::Vec<D> load_any(D d, const std::byte* from) {
  const hn::Repartition<std::uint8_t, D> as_bytes;
  return hn::BitCast(d, hn::LoadU(as_bytes, reinterpret_cast<const std::uint8_t*>(from)));
}

HWY_INLINE float load_f32(const std::byte* from) {
  float value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

HWY_INLINE void store(Values values, float* to) {
  hn::StoreU(values, F32(), to);
}
// To nearest, ties to even; every NaN becomes the quiet one.
HWY_INLINE Bits rounded_to_bf16(Values values) {
  const U32 u32;
  const Bits bits = hn::BitCast(u32, values);
  const Bits odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1));
  const Bits rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(u32, 0x7fff)), odd));
  return hn::IfThenElse(hn::RebindMask(u32, hn::IsNaN(values)), hn::Set(u32, 0x7fc0), rounded);
}
HWY_INLINE void store(Values values, Bf16* to) {
  const hn::Rebind<std::uint16_t, F32> halves;
  hn::StoreU(hn::TruncateTo(halves, rounded_to_bf16(values)), halves, reinterpret_cast<std::uint16_t*>(to));
}

struct FromF32 {
  static constexpr std::size_t kSize = 4;
  HWY_INLINE Values load(const std::byte* from) const { return load_any(F32(), from); }
};

struct FromBf16 {
  static constexpr std::size_t kSize = 2;
  HWY_INLINE Values load(const std::byte* from) const {
    const hn::Rebind<std::uint16_t, F32> narrow;
    return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), load_any(narrow, from))));
  }
};

struct FromF16 {
  static constexpr std::size_t kSize = 2;
  HWY_INLINE Values load(const std::byte* from) const {
    const hn::Rebind<std::uint16_t, F32> bits;
    const hn::Rebind<hwy::float16_t, F32> narrow;
    const auto half = load_any(bits, from);
    const Values value = hn::PromoteTo(F32(), hn::BitCast(narrow, half));
    // Where Highway has no instruction for it, infinity and NaN come out as numbers from 65536 on.
    const auto exponent = hn::And(half, hn::Set(bits, 0x7c00));
    const auto special = hn::VecFromMask(bits, hn::Eq(exponent, hn::Set(bits, 0x7c00)));
    const Bits ones = hn::And(hn::ShiftLeft<16>(hn::PromoteTo(U32(), special)), hn::Set(U32(), 0x7f800000));
    return hn::Or(value, hn::BitCast(F32(), ones));
  }
};

// e4m3 has exponents 8 lower than f16 and its mantissa 7 bits higher: as f16 a code is worth 1/256, exactly,
// subnormal codes too.
struct FromFp8 {
  static constexpr std::size_t kSize = 1;
  float scale = 1;
  HWY_INLINE Values load(const std::byte* from) const {
    const hn::Rebind<std::uint8_t, F32> codes;
    const hn::Rebind<std::uint16_t, F32> u16;
    const hn::Rebind<hwy::float16_t, F32> f16;
    const auto code = hn::PromoteTo(u16, load_any(codes, from));
    const auto magnitude = hn::And(code, hn::Set(u16, 0x7f));
    const auto sign = hn::ShiftLeft<8>(hn::And(code, hn::Set(u16, 0x80)));
    const auto bits = hn::Or(sign, hn::ShiftLeft<7>(magnitude));
    const Values value = hn::Mul(hn::PromoteTo(F32(), hn::BitCast(f16, bits)), hn::Set(F32(), 256.0F));
    const auto nan = hn::VecFromMask(u16, hn::Eq(magnitude, hn::Set(u16, 0x7f)));
    const Values ones = hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), nan)));
    return hn::Or(hn::Mul(value, hn::Set(F32(), scale)), ones);
  }
};

template <class From, class T>
HWY_INLINE void widen_from(const From& load, const std::byte* from, std::size_t count, T* to) {
  const std::size_t lanes = hn::Lanes(F32());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) store(load.load(from + i * From::kSize), to + i);
  if (i == count) return;
  std::byte padded[kMostLanes * From::kSize] = {};
  T whole[kMostLanes];
  std::memcpy(padded, from + i * From::kSize, (count - i) * From::kSize);
  store(load.load(padded), whole);
  std::copy_n(whole, count - i, to + i);
}

#if HWY_TARGET <= HWY_AVX3
// To bf16 with registers of 64 bytes: the 128 values of positive codes times the scale, rounded, fill four of
// them; the sign is added.
struct Fp8Lookup {
  using Words = hn::CappedTag<std::uint16_t, 32>;
  static constexpr std::size_t kValues = 32;  // at once
  hn::Vec<Words> tables[4];

  HWY_INLINE explicit Fp8Lookup(const FromFp8& load) {
    std::byte codes[128];
    for (std::size_t i = 0; i < 128; ++i) codes[i] = static_cast<std::byte>(i);
    Bf16 values[128];
    for (std::size_t i = 0; i < 128; i += hn::Lanes(F32())) store(load.load(codes + i), values + i);
    for (std::size_t i = 0; i < 4; ++i)
      tables[i] = hn::LoadU(Words(), reinterpret_cast<const std::uint16_t*>(values) + i * kValues);
  }

  HWY_INLINE void store32(const std::byte* from, Bf16* to) const {
    const Words words;
    const hn::Rebind<std::uint8_t, Words> bytes;
    const auto code = hn::PromoteTo(words, load_any(bytes, from));
    // Highway has no name for a table of two registers.  The processor looks at six bits of the index.
    const hn::Vec<Words> low{_mm512_permutex2var_epi16(tables[0].raw, code.raw, tables[1].raw)};
    const hn::Vec<Words> high{_mm512_permutex2var_epi16(tables[2].raw, code.raw, tables[3].raw)};
    const auto upper = hn::TestBit(code, hn::Set(words, 0x40));
    const auto sign = hn::ShiftLeft<8>(hn::And(code, hn::Set(words, 0x80)));
    hn::StoreU(hn::Or(hn::IfThenElse(upper, high, low), sign), words, reinterpret_cast<std::uint16_t*>(to));
  }
};
#endif

template <class T>
HWY_INLINE void widen_fp8(const FromFp8& load, const std::byte* from, std::size_t count, T* to) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (sizeof(T) == 2) {
    constexpr std::size_t kWorthwhile = 128;  // values; the tables are made at every call
    if (count >= kWorthwhile) {
      const Fp8Lookup lookup(load);
      for (; count >= Fp8Lookup::kValues; count -= Fp8Lookup::kValues) {
        lookup.store32(from, to);
        from += Fp8Lookup::kValues;
        to += Fp8Lookup::kValues;
      }
    }
  }
#endif
  widen_from(load, from, count, to);
}

// NF4: the sixteen values times the block's absmax, rounded, are looked up byte by byte.
using Bytes16 = hn::Full128<std::uint8_t>;

template <class T>
struct Nf4Lookup {
  hn::Vec<Bytes16> planes[sizeof(T)];  // byte i of each of the sixteen results

  HWY_INLINE explicit Nf4Lookup(float absmax) {
    const std::size_t lanes = hn::Lanes(F32());
    T results[16];
    for (std::size_t i = 0; i < 16; i += lanes)
      store(hn::Mul(hn::LoadU(F32(), kNf4Values.data() + i), hn::Set(F32(), absmax)), results + i);
    std::uint8_t bytes[sizeof(T)][16], stored[sizeof results];
    std::memcpy(stored, results, sizeof results);
    for (std::size_t i = 0; i < 16; ++i) {
      for (std::size_t plane = 0; plane < sizeof(T); ++plane) bytes[plane][i] = stored[i * sizeof(T) + plane];
    }
    for (std::size_t plane = 0; plane < sizeof(T); ++plane)
      planes[plane] = hn::LoadU(Bytes16(), bytes[plane]);
  }

  // Sixteen values from their codes.
  HWY_INLINE void store16(hn::Vec<Bytes16> codes, Bf16* to) const {
    const auto low = hn::TableLookupBytes(planes[0], codes), high = hn::TableLookupBytes(planes[1], codes);
    auto* out = reinterpret_cast<std::uint8_t*>(to);
    hn::StoreU(hn::InterleaveLower(Bytes16(), low, high), Bytes16(), out);
    hn::StoreU(hn::InterleaveUpper(Bytes16(), low, high), Bytes16(), out + 16);
  }
  HWY_INLINE void store16(hn::Vec<Bytes16> codes, float* to) const {
    const hn::Full128<std::uint16_t> u16;
    const Bytes16 u8;
    const auto a = hn::TableLookupBytes(planes[0], codes), b = hn::TableLookupBytes(planes[1], codes);
    const auto c = hn::TableLookupBytes(planes[2], codes), d = hn::TableLookupBytes(planes[3], codes);
    auto* out = reinterpret_cast<std::uint16_t*>(to);
    auto store8 = [&](auto low, auto high, std::uint16_t* at) {
      hn::StoreU(hn::InterleaveLower(u16, low, high), u16, at);
      hn::StoreU(hn::InterleaveUpper(u16, low, high), u16, at + 8);
    };
    store8(hn::BitCast(u16, hn::InterleaveLower(u8, a, b)), hn::BitCast(u16, hn::InterleaveLower(u8, c, d)),
           out);
    store8(hn::BitCast(u16, hn::InterleaveUpper(u8, a, b)), hn::BitCast(u16, hn::InterleaveUpper(u8, c, d)),
           out + 16);
  }
};

// The codes of 16 values, the first in the high half of the first byte.
HWY_INLINE hn::Vec<Bytes16> codes16(const std::byte* from) {
  const Bytes16 u8;
  const hn::Full128<std::uint16_t> u16;
  const hn::Full64<std::uint8_t> packed;
  const auto pairs = hn::PromoteTo(u16, load_any(packed, from));
  const auto codes = hn::Or(hn::ShiftRight<4>(pairs), hn::ShiftLeft<8>(pairs));
  return hn::And(hn::BitCast(u8, codes), hn::Set(u8, 0xf));
}

// A whole block of 64.
template <class T>
HWY_INLINE void widen_nf4_block(const std::byte* values, float absmax, T* to) {
  const Nf4Lookup<T> lookup(absmax);
  for (std::size_t i = 0; i < kNf4BlockValues; i += 16) lookup.store16(codes16(values + i / 2), to + i);
}

#if HWY_TARGET <= HWY_AVX3
// With registers of 64 bytes one holds all sixteen results: a byte is two neighbouring values.
HWY_INLINE Bits pairs16(const std::byte* values) {
  return hn::PromoteTo(U32(), load_any(hn::Rebind<std::uint8_t, F32>(), values));
}
HWY_INLINE Values times_absmax(float absmax) {
  return hn::Mul(hn::LoadU(F32(), kNf4Values.data()), hn::Set(F32(), absmax));
}

HWY_INLINE void widen_nf4_block(const std::byte* values, float absmax, Bf16* to) {
  using Words = hn::CappedTag<std::uint16_t, 32>;
  const Words words;
  std::uint16_t results[32] = {};
  store(times_absmax(absmax), reinterpret_cast<Bf16*>(results));
  const auto table = hn::LoadU(words, results);
  for (std::size_t i = 0; i < kNf4BlockValues; i += 32) {
    const Bits pairs = pairs16(values + i / 2);
    const Bits second = hn::ShiftLeft<16>(hn::And(pairs, hn::Set(U32(), 0xf)));
    const auto codes = hn::BitCast(words, hn::Or(hn::ShiftRight<4>(pairs), second));
    const hn::Vec<Words> found{_mm512_permutex2var_epi16(table.raw, codes.raw, table.raw)};
    hn::StoreU(found, words, reinterpret_cast<std::uint16_t*>(to + i));
  }
}

HWY_INLINE void widen_nf4_block(const std::byte* values, float absmax, float* to) {
  const Values table = times_absmax(absmax);
  const __m512i first_half = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i second_half = _mm512_add_epi32(first_half, _mm512_set1_epi32(8));
  auto values_of = [&](Bits codes)
                       HWY_ATTR { return hn::TableLookupLanes(table, hn::IndicesFromVec(F32(), codes)); };
  for (std::size_t i = 0; i < kNf4BlockValues; i += 32) {
    const Bits pairs = pairs16(values + i / 2);
    const Values even = values_of(hn::ShiftRight<4>(pairs));
    const Values odd = values_of(hn::And(pairs, hn::Set(U32(), 0xf)));
    store(Values{_mm512_permutex2var_ps(even.raw, first_half, odd.raw)}, to + i);
    store(Values{_mm512_permutex2var_ps(even.raw, second_half, odd.raw)}, to + i + 16);
  }
}
#endif

template <class T>
HWY_INLINE void widen_nf4(const StoredValues& from, std::size_t first, std::size_t count, T* to) {
  const std::size_t end = first + count;
  while (first < end) {
    const std::size_t block = first / kNf4BlockValues, begin = block * kNf4BlockValues;
    const std::size_t taken = std::min(end, begin + kNf4BlockValues) - first;
    const std::byte* values = from.values + begin / 2;
    const float absmax = load_f32(from.scales + 4 * block);
    if (taken == kNf4BlockValues) {
      widen_nf4_block(values, absmax, to);
    } else {  // a part, which may end before the block's bytes would
      std::byte padded[kNf4BlockValues / 2] = {};
      T whole[kNf4BlockValues];
      std::memcpy(padded, values, (first + taken - begin + 1) / 2);
      widen_nf4_block(padded, absmax, whole);
      std::copy_n(whole + (first - begin), taken, to);
    }
    first += taken;
    to += taken;
  }
}

template <class T>
HWY_INLINE void widen_any(const StoredValues& from, std::int64_t first, std::int64_t count, T* to) {
  const auto begin = static_cast<std::size_t>(first), size = static_cast<std::size_t>(count);
  switch (from.format) {
    case Stored::f32:
      return widen_from(FromF32(), from.values + 4 * begin, size, to);
    case Stored::bf16:
      return widen_from(FromBf16(), from.values + 2 * begin, size, to);
    case Stored::f16:
      return widen_from(FromF16(), from.values + 2 * begin, size, to);
    case Stored::fp8: {
      const float scale = from.scales ? load_f32(from.scales) : 1.0F;
      return widen_fp8(FromFp8{.scale = scale}, from.values + begin, size, to);
    }
    case Stored::nf4:
      return widen_nf4(from, begin, size, to);
  }
}

void WidenToF32(const StoredValues& from, std::int64_t first, std::int64_t count, float* to) {
  widen_any(from, first, count, to);
}
void WidenToBf16(const StoredValues& from, std::int64_t first, std::int64_t count, Bf16* to) {
  widen_any(from, first, count, to);
}

#endif

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {
namespace {

HWY_EXPORT(WidenToF32);
HWY_EXPORT(WidenToBf16);

}  // namespace

void widen_values(const StoredValues& from, std::int64_t first, std::int64_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(WidenToF32)(from, first, count, to);
}

void widen_values(const StoredValues& from, std::int64_t first, std::int64_t count, Bf16* to) {
  HWY_DYNAMIC_DISPATCH(WidenToBf16)(from, first, count, to);
}

}  // namespace sluice::kernels
#endif
