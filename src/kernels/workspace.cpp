#include "kernels/workspace.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <c10/util/accumulate.h>

#include <algorithm>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::int64_t kLeastChunk = std::int64_t{1} << 20;

std::int64_t bytes_of(at::IntArrayRef sizes, at::ScalarType dtype) {
  return c10::multiply_integers(sizes) * static_cast<std::int64_t>(c10::elementSize(dtype));
}

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

at::Tensor memory_of(std::int64_t count) {
  return at::empty({count}, at::TensorOptions().dtype(at::kByte));  // LibTorch aligns to 64
}

}  // namespace

void Workspace::reserve(Bytes size) {
  if (!chunks_.empty()) throw Error(ErrorKind::internal, "workspace: reserved after it was used");
  chunks_.push_back({.bytes = memory_of(static_cast<std::int64_t>(size))});
}

at::Tensor Workspace::take(at::IntArrayRef sizes, at::ScalarType dtype) {
  if (depth_ == 0) throw Error(ErrorKind::internal, "workspace: a tensor is taken outside of any scope");
  const std::int64_t bytes = bytes_of(sizes, dtype), size = aligned(bytes);
  // What does not fit the current chunk goes into the next one; the next step has one chunk.
  while (current_ < chunks_.size() && chunks_[current_].bytes.numel() - chunks_[current_].used < size)
    ++current_;
  if (current_ == chunks_.size()) chunks_.push_back({.bytes = memory_of(std::max(size, kLeastChunk))});
  Chunk& chunk = chunks_[current_];
  at::Tensor tensor = chunk.bytes.narrow(0, chunk.used, bytes).view(dtype).view(sizes);
  chunk.used += size;
  most_used_ = std::max(most_used_, used());
  return tensor;
}

std::int64_t Workspace::used() const {
  std::int64_t sum = 0;
  for (const Chunk& chunk : chunks_) sum += chunk.used;
  return sum;
}

Bytes Workspace::size_of(at::IntArrayRef sizes, at::ScalarType dtype) {
  return static_cast<Bytes>(aligned(bytes_of(sizes, dtype)));
}

Bytes Workspace::size() const {
  std::int64_t sum = 0;
  for (const Chunk& chunk : chunks_) sum += chunk.bytes.numel();
  return static_cast<Bytes>(sum);
}

Bytes Workspace::most_used() const {
  return static_cast<Bytes>(most_used_);
}

// All memory is free: one chunk of what was used at once takes the place of several.
void Workspace::join_chunks() {
  if (chunks_.size() < 2) return;
  chunks_.clear();  // before the new one, so that both never exist at once
  chunks_.push_back({.bytes = memory_of(most_used_)});
}

Workspace::Scope::Scope(Workspace& workspace) : workspace_(workspace) {
  if (workspace.depth_ == 0) workspace.join_chunks();
  chunk_ = workspace.current_;
  if (chunk_ < workspace.chunks_.size()) used_ = workspace.chunks_[chunk_].used;
  ++workspace.depth_;
}

Workspace::Scope::~Scope() {
  for (std::size_t i = chunk_; i < workspace_.chunks_.size(); ++i)
    workspace_.chunks_[i].used = i == chunk_ ? used_ : 0;
  workspace_.current_ = chunk_;
  --workspace_.depth_;
}

}  // namespace sluice::kernels
