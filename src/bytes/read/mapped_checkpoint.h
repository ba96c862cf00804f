#pragma once
// A Checkpoint's shards as read-only memory: tensors are used where they lie in the page cache, without a
// copy.  Any thread.

#include <sluice/checkpoint.h>
#include <sluice/progress.h>
#include <sluice/read_options.h>

#include <memory>
#include <span>

namespace sluice::bytes {

class MappedCheckpoint {
 public:
  // Maps every shard, shared.  Error(io) with the limit and the remedy where the kernel refuses.
  // drop: what of the files comes into the page cache from now on is let go again, see let_go(); prefetch:
  // see prefetch().
  explicit MappedCheckpoint(const Checkpoint& checkpoint, CachePolicy cache = CachePolicy::automatic);
  ~MappedCheckpoint();

  // The bytes of a tensor, or of a run inside one that is described as a tensor; valid as long as this
  // object. The address has the alignment that the file offset has: do not assume that of the dtype.
  std::span<const std::byte> view(const TensorInfo& tensor) const;

  // With CachePolicy::prefetch asks the system to read the tensor ahead, in large pieces; else does nothing.
  void prefetch(const TensorInfo& tensor) const;

  // Reads a run into memory, so that its view is looked at without waiting; returns when it is there, or the
  // system refused to say.  Error(interrupted).
  void bring(const TensorInfo& run, const CancelToken* cancel = nullptr) const;
  // Lets go of a run's pages, in this process and in the page cache, unless CachePolicy::keep asks to keep
  // them. Views stay valid, and bring them in again.
  void drop(const TensorInfo& run) const;

  // With CachePolicy::drop takes out of the page cache what was not in it when this object was made; also by
  // the destructor.  Views stay valid, and bring it in again when they are used.
  void let_go();

  // Throws Error(corrupt_file) if a file shrank or was replaced since it was opened.  A mapping whose file
  // shrinks reads as zeros from then on (never SIGBUS), so callers check after computing and before trusting
  // a result.
  void check() const;

  // Bytes of tensors and runs whose view was asked for, each counted once; for reports.
  Bytes bytes_viewed() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::bytes
