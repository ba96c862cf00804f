#include "bytes/plan/float_formats.h"
#include "bytes/plan/part_copy.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

namespace sluice::bytes {
namespace {

template <Dtype>
struct Float;
template <>
struct Float<Dtype::F64> {
  using Bits = double;
};
template <>
struct Float<Dtype::F32> {
  using Bits = float;
  static float to_f32(float value) { return value; }
  static float from_f32(float value) { return value; }
};
template <>
struct Float<Dtype::BF16> {
  using Bits = std::uint16_t;
  static float to_f32(Bits bits) { return f32_from_bf16(bits); }
  static Bits from_f32(float value) { return bf16_from_f32(value); }
};
template <typename Format, typename Storage>
struct SmallFloatFormat {
  using Bits = Storage;
  static float to_f32(Bits bits) { return Format::to_f32(bits); }
  static Bits from_f32(float value) { return static_cast<Bits>(Format::from_f32(value)); }
};
template <>
struct Float<Dtype::F16> : SmallFloatFormat<F16Format, std::uint16_t> {};
template <>
struct Float<Dtype::F8_E4M3> : SmallFloatFormat<F8E4M3Format, std::uint8_t> {};
template <>
struct Float<Dtype::F8_E5M2> : SmallFloatFormat<F8E5M2Format, std::uint8_t> {};

template <Dtype from, Dtype to>
typename Float<to>::Bits convert(typename Float<from>::Bits value) {
  if constexpr (from == to) {
    return value;
  } else if constexpr (to == Dtype::F64) {
    return Float<from>::to_f32(value);
  } else if constexpr (from == Dtype::F64 && to == Dtype::F32) {
    return static_cast<float>(value);
  } else if constexpr (from == Dtype::F64) {
    return Float<to>::from_f32(f32_for_rounding(value));
  } else {
    return Float<to>::from_f32(Float<from>::to_f32(value));
  }
}

// Elements have any address: they are loaded and stored by memcpy, which costs nothing where it can be seen
// through.
template <typename From, typename To, typename Convert>
void convert_each(std::span<const std::byte> from, std::span<std::byte> to, Convert convert) {
  const std::byte* __restrict in = from.data();
  std::byte* __restrict out = to.data();
  const std::size_t count = from.size() / sizeof(From);
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, in + i * sizeof(From), sizeof(From));
    const To converted = convert(value);
    std::memcpy(out + i * sizeof(To), &converted, sizeof(To));
  }
}

template <Dtype dtype>
using Tag = std::integral_constant<Dtype, dtype>;

// Calls visit(Tag<dtype>) for a floating-point format that can be cast; false for anything else.
template <typename Visit>
bool with_float(Dtype dtype, Visit visit) {
  switch (dtype) {
    case Dtype::F64:
      return visit(Tag<Dtype::F64>()), true;
    case Dtype::F32:
      return visit(Tag<Dtype::F32>()), true;
    case Dtype::F16:
      return visit(Tag<Dtype::F16>()), true;
    case Dtype::BF16:
      return visit(Tag<Dtype::BF16>()), true;
    case Dtype::F8_E4M3:
      return visit(Tag<Dtype::F8_E4M3>()), true;
    case Dtype::F8_E5M2:
      return visit(Tag<Dtype::F8_E5M2>()), true;
    default:
      return false;
  }
}

// Calls visit with a value of the C++ type.
template <typename Visit>
bool with_integer(Dtype dtype, Visit visit) {
  switch (dtype) {
    case Dtype::BOOL:
      return visit(bool()), true;
    case Dtype::U8:
      return visit(std::uint8_t()), true;
    case Dtype::I8:
      return visit(std::int8_t()), true;
    case Dtype::U16:
      return visit(std::uint16_t()), true;
    case Dtype::I16:
      return visit(std::int16_t()), true;
    case Dtype::U32:
      return visit(std::uint32_t()), true;
    case Dtype::I32:
      return visit(std::int32_t()), true;
    case Dtype::U64:
      return visit(std::uint64_t()), true;
    case Dtype::I64:
      return visit(std::int64_t()), true;
    default:
      return false;
  }
}

// Every value of From is one of To.
template <typename From, typename To>
constexpr bool fits() {
  using FromLimits = std::numeric_limits<From>;
  using ToLimits = std::numeric_limits<To>;
  return FromLimits::digits <= ToLimits::digits && (!FromLimits::is_signed || ToLimits::is_signed);
}

template <typename From, typename To>
void widen_each(std::span<const std::byte> from, std::span<std::byte> to) {
  // A file may hold any byte for "true", a C++ bool may not.
  using Stored = std::conditional_t<std::is_same_v<From, bool>, std::uint8_t, From>;
  convert_each<Stored, To>(from, to, [](Stored value) { return static_cast<To>(static_cast<From>(value)); });
}

}  // namespace

bool can_cast(Dtype from, Dtype to) {
  if (from == to) return true;
  const auto ignore = [](auto) {};
  if (with_float(from, ignore) && with_float(to, ignore)) return true;
  bool can = false;
  with_integer(
      from, [&](auto in) { with_integer(to, [&](auto out) { can = fits<decltype(in), decltype(out)>(); }); });
  return can;
}

void cast_elements(Dtype from_dtype, std::span<const std::byte> from, Dtype to_dtype,
                   std::span<std::byte> to) {
  if (from_dtype == to_dtype) {
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  bool done = false;
  with_float(from_dtype, [&](auto in) {
    done = with_float(to_dtype, [&](auto out) {
      constexpr Dtype kFrom = decltype(in)::value, kTo = decltype(out)::value;
      convert_each<typename Float<kFrom>::Bits, typename Float<kTo>::Bits>(from, to, convert<kFrom, kTo>);
    });
  });
  if (done) return;
  with_integer(from_dtype, [&](auto in) {
    with_integer(to_dtype, [&](auto out) {
      using From = decltype(in);
      using To = decltype(out);
      if constexpr (fits<From, To>()) {
        widen_each<From, To>(from, to);
        done = true;
      }
    });
  });
  if (!done) {
    throw Error(ErrorKind::internal,
                fmt::format("{} cannot be cast to {}", dtype_name(from_dtype), dtype_name(to_dtype)));
  }
}

}  // namespace sluice::bytes
