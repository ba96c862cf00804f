#include "bytes/load/deliverer.h"

#include "base/text.h"
#include "bytes/plan/part_copy.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace sluice::bytes {
namespace {

// Cast values are handed on in pieces of this size: they stay in the processor's cache.
constexpr Bytes kCastPiece = KiB(256);

Bytes element_size(Dtype dtype) {
  return std::max(1u, dtype_bits(dtype) / 8);
}

}  // namespace

// Fresh memory that is not cleared: every byte will be written.
struct Deliverer::Staging {
  Staging(const Target& target)
      : tensor(target.tensor), size(staging_size(target)), memory(new std::byte[size]) {
    tensor.dtype = target.assembled;
    tensor.size = size;
  }
  std::span<std::byte> bytes() { return {memory.get(), size}; }

  TargetTensor tensor;  // as it is put together
  Bytes size;
  std::unique_ptr<std::byte[]> memory;
};

Deliverer::Deliverer(const PlanState& plan, TensorSink& sink)
    : plan_(plan), sink_(sink), remaining_(plan.targets.size()), stagings_(plan.targets.size()) {
  std::vector<bool> has_memory;
  for (std::size_t i = 0; i < plan.targets.size(); ++i) {
    destinations_.push_back(sink.destination(i));
    const TargetTensor& target = plan.targets[i].tensor;
    if (!destinations_[i].empty() && destinations_[i].size() != target.size) {
      throw Error(ErrorKind::internal,
                  fmt::format("tensor {} has {} bytes, its destination {}", in_quotes(target.name),
                              target.size, destinations_[i].size()));
    }
    has_memory.push_back(!destinations_[i].empty());
  }
  deliveries_ = decide_delivery(plan, has_memory);
  for (const WantedRange& range : plan.ranges) remaining_[range.target] += range.size;
}

Deliverer::~Deliverer() = default;

void Deliverer::complete_empty() {
  for (std::size_t i = 0; i < plan_.targets.size(); ++i) {
    if (plan_.targets[i].tensor.size == 0) finish(i);
  }
}

void Deliverer::deliver(const Read& read, std::span<const WantedRange> ranges,
                        const RangeAddresses& addresses, std::span<const std::byte> bytes) {
  for (std::size_t i = read.first; i < read.last; ++i) {
    const Segment segment = segment_of(read, ranges, i);
    if (addresses[i] == nullptr) take(ranges[i], segment.skip, bytes.subspan(segment.in_read, segment.size));
    remaining_[ranges[i].target] -= segment.size;
    if (remaining_[ranges[i].target] == 0) finish(ranges[i].target);
  }
}

void Deliverer::take(const WantedRange& range, Bytes skip, std::span<const std::byte> bytes) {
  if (deliveries_[range.target] == Delivery::passed) {
    sink_.take(range.target, range.part_offset + skip, bytes);
    return;
  }
  const Bytes element = element_size(plan_.targets[range.target].parts[range.part].source.dtype);
  Bytes at = range.part_offset + skip;
  if (split_bytes_ > 0) {
    const Bytes missing = std::min<Bytes>(element - split_bytes_, bytes.size());
    std::memcpy(split_element_.data() + split_bytes_, bytes.data(), missing);
    at -= split_bytes_;
    split_bytes_ += missing;
    if (split_bytes_ < element) return;
    take_elements(range, at, std::span(split_element_).first(element));
    at += element;
    bytes = bytes.subspan(missing);
  }
  const Bytes whole = bytes.size() / element * element;
  if (whole > 0) take_elements(range, at, bytes.first(whole));
  split_bytes_ = bytes.size() - whole;
  std::memcpy(split_element_.data(), bytes.data() + whole, split_bytes_);
}

void Deliverer::take_elements(const WantedRange& range, Bytes part_offset,
                              std::span<const std::byte> elements) {
  const Target& target = plan_.targets[range.target];
  const Part& part = target.parts[range.part];
  switch (deliveries_[range.target]) {
    case Delivery::in_place:
      copy_piece(part, target.tensor, part_offset, elements, destinations_[range.target]);
      break;
    case Delivery::cast:
      take_cast(range.target, part_offset / element_size(part.source.dtype), part.source.dtype, elements);
      break;
    default: {
      Staging& whole = staging(range.target);
      copy_piece(part, whole.tensor, part_offset, elements, whole.bytes());
    }
  }
}

void Deliverer::take_cast(std::size_t target, Bytes element, Dtype from,
                          std::span<const std::byte> elements) {
  const Dtype to = plan_.targets[target].tensor.dtype;
  const Bytes from_size = element_size(from), to_size = element_size(to);
  cast_buffer_.resize(kCastPiece);
  while (!elements.empty()) {
    const Bytes count = std::min<Bytes>(elements.size() / from_size, kCastPiece / to_size);
    auto cast = std::span(cast_buffer_).first(count * to_size);
    cast_elements(from, elements.first(count * from_size), to, cast);
    sink_.take(target, element * to_size, cast);
    element += count;
    elements = elements.subspan(count * from_size);
  }
}

Deliverer::Staging& Deliverer::staging(std::size_t target) {
  if (!stagings_[target]) stagings_[target] = std::make_unique<Staging>(plan_.targets[target]);
  return *stagings_[target];
}

void Deliverer::finish(std::size_t target) {
  if (plan_.targets[target].quantized) {
    finish_quantized(target);
  } else {
    if (stagings_[target]) hand_over(target, stagings_[target]->bytes());
    sink_.complete(target);
  }
  stagings_[target].reset();
}

void Deliverer::finish_quantized(std::size_t target) {
  Staging& values = staging(target);
  std::vector<std::byte> own;
  std::span<std::byte> to = destinations_[target];
  if (to.empty()) {
    own.resize(plan_.targets[target].tensor.size);
    to = own;
  }
  const float scale = quantize_to_f8_e4m3(values.tensor.dtype, values.bytes(), to, values.tensor.name);
  if (!own.empty()) hand_over(target, own);
  sink_.complete(target);
  hand_over(target + 1, std::as_bytes(std::span(&scale, 1)));
  sink_.complete(target + 1);
}

void Deliverer::hand_over(std::size_t target, std::span<const std::byte> whole) {
  if (destinations_[target].empty()) {
    sink_.take(target, 0, whole);
  } else {
    std::memcpy(destinations_[target].data(), whole.data(), whole.size());
  }
}

}  // namespace sluice::bytes
