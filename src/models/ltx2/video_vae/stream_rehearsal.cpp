#include "models/ltx2/video_vae/stream_rehearsal.h"

#include <algorithm>
#include <optional>

namespace sluice::ltx2 {

Arena::Block Arena::take(std::int64_t bytes) {
  if (bytes <= 0) return {};
  const std::optional<Bytes> offset = blocks_.take(static_cast<Bytes>(bytes));
  peak_ = std::max(peak_, blocks_.live());
  return {offset.value(), true};
}

void Arena::give_back(Block& block) {
  if (block.taken) blocks_.give_back(block.offset);
  block = {};
}

void Arena::brief(std::int64_t bytes) {
  Block block = take(bytes);
  give_back(block);
}

std::int64_t StreamRehearsal::bytes(std::int64_t values) const {
  return values * static_cast<std::int64_t>(c10::elementSize(compute_));
}

void StreamRehearsal::work_in(std::int64_t bytes) {
  if (bytes <= scratch_bytes_) return;
  arena_.give_back(scratch_);
  scratch_ = arena_.take(bytes);
  scratch_bytes_ = bytes;
}

RehearsedFrames StreamRehearsal::convolve(ConvSize size, Conv& conv, RehearsedFrames x, Last last,
                                          ConvWay way) {
  if (x.count == 0 && (last == Last::no || !conv.running)) return {};
  const std::int64_t copies = way.lead + (causal_ ? kConvHistory : kConvTaps / 2);
  size.frames =
      x.count + (conv.running ? kConvHistory : copies) + (last == Last::yes && !causal_ ? kConvTaps / 2 : 0);
  const std::int64_t frame = size.in * size.positions();
  Arena::Block reordered = arena_.take(way.arrival == Arrival::by_copy ? bytes(x.count * frame) : 0);
  work_in(conv_memory(size, compute_).all());
  Arena::Block kept = arena_.take(last == Last::no ? bytes(kConvHistory * frame) : 0);
  if (way.old == Old::free) arena_.give_back(conv.history);
  conv.history = kept;
  conv.running = last == Last::no;
  arena_.give_back(reordered);
  arena_.give_back(x.block);
  return {size.frames_out(), arena_.take(bytes(size.frames_out() * size.out * size.positions()))};
}

RehearsedFrames StreamRehearsal::residual(const ConvSize& size, Conv& conv1, Conv& conv2, std::int64_t n,
                                          Last last) {
  Arena::Block old = conv1.history;  // the skip path's, until the end
  RehearsedFrames h = convolve(size, conv1, {n, {}}, last, {.old = Old::keep});
  h = convolve(size, conv2, h, last, {});
  arena_.give_back(old);
  return h;
}

}  // namespace sluice::ltx2
