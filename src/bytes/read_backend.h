#pragma once
// A ReadBackend brings bytes of a Checkpoint's shards into memory by one way: through a mapping (mmap) or by
// reading (pread).  One object serves one Checkpoint; all functions may be called from any thread.

#include <sluice/checkpoint.h>

#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::bytes {

enum class BackendKind { mmap, pread };

std::string_view to_string(BackendKind kind);
// "mmap" or "pread"; Error(usage) that lists the names otherwise.
BackendKind parse_backend(std::string_view name);

class ReadBackend {
 public:
  virtual ~ReadBackend() = default;

  virtual BackendKind kind() const = 0;

  // The tensor's bytes where they lie, valid as long as this object; empty if the backend has no mapping.
  // The address has the alignment that the file offset has: do not assume that of the dtype.
  virtual std::span<const std::byte> view(const TensorInfo& tensor) const = 0;

  // Fills `to` with the bytes [skip, skip + to.size()) of the tensor.  All of them or Error(corrupt_file /
  // io) naming file, tensor and offset.
  virtual void read(const TensorInfo& tensor, Bytes skip, std::span<std::byte> to) const = 0;

  // Throws Error(corrupt_file) if a file shrank or was replaced since it was opened.  A mapping whose file
  // shrinks reads as zeros from then on (never SIGBUS), so callers check after computing and before trusting
  // a result.
  virtual void check() const = 0;

  // Bytes handed out by read() and, for a mapping, bytes of views first asked for; for reports.
  virtual Bytes bytes_read() const = 0;
};

// mmap: maps every shard read-only and shared.  Error(io) with the limit and the remedy where the kernel
// refuses.
std::unique_ptr<ReadBackend> make_backend(BackendKind kind, const Checkpoint& checkpoint);

}  // namespace sluice::bytes
