#include "weights/quantize/quantizing_sink.h"

#include "base/nf4.h"
#include "weights/quantize/encode.h"
#include "weights/quantize/parts.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace sluice::weights {
namespace {

constexpr std::size_t kPackedBlock = kNf4BlockValues / 2;

std::size_t element_size(const QuantizedSource& source) {
  return dtype_bits(source.tensor.dtype) / 8;
}

void append(std::string& to, std::span<const std::byte> bytes) {
  to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

void QuantizingSink::take(std::size_t target, Bytes offset, std::span<const std::byte> bytes) {
  if (offset == 0) begin(target);
  if (!current_->source.format) {
    shared_.writer.append(bytes);
  } else {
    units_.add(bytes, [this](std::span<const std::byte> values) { take_units(values); });
  }
}

void QuantizingSink::begin(std::size_t target) {
  const QuantizedSource& source = shared_.layout.sources[target];
  current_.emplace(Current{.source = source});
  if (!source.format) return;
  const bool blocks = source.format == QuantFormat::nf4;
  units_.begin(element_size(source) * (blocks ? kNf4BlockValues : 1));
  if (blocks) {
    current_->absmax.reserve(static_cast<std::size_t>(source.elements()) / kNf4BlockValues + 1);
    return;
  }
  const auto known = shared_.known.find(target);
  current_->holds = known == shared_.known.end();
  if (!current_->holds) current_->largest = known->second;
}

// Whole blocks or elements; less only at the tensor's end.
void QuantizingSink::take_units(std::span<const std::byte> values) {
  Current& current = *current_;
  if (current.source.format == QuantFormat::nf4) {
    encode_blocks(values);
  } else if (current.holds) {
    const ValuesOf of{shared_.checkpoint, current.source.tensor, current.values};
    const auto place = shared_.held.subspan(current.values * element_size(current.source), values.size());
    current.largest = std::max(current.largest, largest_of(shared_.workers, of, values, place));
  } else {
    encode_f8(values);
  }
  current.values += values.size() / element_size(current.source);
}

void QuantizingSink::encode_f8(std::span<const std::byte> values) {
  const std::size_t element = element_size(current_->source);
  const float scale = f8_e4m3_scale(current_->largest);
  while (!values.empty()) {
    const std::span<std::byte> room = shared_.writer.room();
    const std::size_t count = std::min(room.size(), values.size() / element);
    encode_f8_e4m3(shared_.workers, current_->source.tensor.dtype, values.first(count * element), scale,
                   room.first(count));
    shared_.writer.filled(count);
    values = values.subspan(count * element);
  }
}

void QuantizingSink::encode_blocks(std::span<const std::byte> values) {
  Current& current = *current_;
  const std::size_t element = element_size(current.source), block = element * kNf4BlockValues;
  std::array<std::byte, kPackedBlock> split;  // a block's codes, part of which go into the next room
  std::size_t first = current.values;
  while (!values.empty()) {
    const std::span<std::byte> room = shared_.writer.room();
    const std::size_t fit = room.size() / kPackedBlock;
    const auto piece = values.first(std::min(std::max<std::size_t>(fit, 1) * block, values.size()));
    const std::size_t count = piece.size() / element, size = (count + 1) / 2;
    const std::span<std::byte> codes = fit > 0 ? room : std::span<std::byte>(split);
    const std::size_t blocks = current.absmax.size();
    current.absmax.resize(blocks + (count + kNf4BlockValues - 1) / kNf4BlockValues);
    encode_nf4(shared_.workers, {shared_.checkpoint, current.source.tensor, first}, piece,
               std::span(current.absmax).subspan(blocks), codes.first(size));
    if (fit > 0) {
      shared_.writer.filled(size);
    } else {
      shared_.writer.append(codes.first(size));
    }
    first += count;
    values = values.subspan(piece.size());
  }
}

void QuantizingSink::complete(std::size_t target) {
  const QuantizedSource& source = shared_.layout.sources[target];
  if (!source.format) return;
  units_.finish([this](std::span<const std::byte> values) { take_units(values); });
  if (source.format == QuantFormat::fp8) {
    finish_f8();
  } else {
    finish_nf4();
  }
}

void QuantizingSink::finish_f8() {
  if (current_->holds) encode_f8(shared_.held.first(current_->source.tensor.size));
  const float scale = f8_e4m3_scale(current_->largest);
  append(wide_tail_, std::as_bytes(std::span(&scale, 1)));
}

void QuantizingSink::finish_nf4() {
  shared_.writer.append(std::as_bytes(std::span(current_->absmax)));
  append(wide_tail_, std::as_bytes(std::span(kNf4Values)));
  narrow_tail_ += nf4_quant_state(current_->source.tensor);
  current_->absmax = {};
}

void QuantizingSink::write_tails() {
  for (const std::string& tail : {std::move(wide_tail_), std::move(narrow_tail_)})
    shared_.writer.append(std::as_bytes(std::span(tail)));
}

void LargestSink::take(std::size_t target, Bytes offset, std::span<const std::byte> bytes) {
  const QuantizedSource& source = layout_.sources[target];
  if (offset == 0) {
    units_.begin(element_size(source));
    values_ = 0;
  }
  units_.add(bytes, [&](std::span<const std::byte> values) {
    float& largest = largest_[target];
    largest = std::max(largest, largest_of(workers_, {checkpoint_, source.tensor, values_}, values));
    values_ += values.size() / element_size(source);
  });
}

}  // namespace sluice::weights
