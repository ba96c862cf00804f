#pragma once
// A WeightSource fills the slots of a ParameterGroup for the time of a lease.  Whether the tensors are a
// mapping's bytes or a copy in host memory is the source's business: a model's forward pass reads the same
// under each.
//
//   WeightLease lease = source.acquire(block.parameters);   // slots valid in this scope, in the file's dtype
//   x = block_forward(block, x);
//
// A source serves one thread at a time.  Nobody writes to a leased tensor: it may be the file itself.

#include "bytes/read/mapped_checkpoint.h"
#include "weights/component.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace sluice::weights {

class WeightLease {
 public:
  // give_back: what the source does when the lease ends; slots are cleared first.
  WeightLease(const ParameterGroup& group, std::function<void()> give_back = {});
  ~WeightLease();
  WeightLease(WeightLease&& other) noexcept;
  WeightLease& operator=(WeightLease&& other) = delete;

 private:
  const ParameterGroup* group_;  // nullptr once moved from
  std::function<void()> give_back_;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  virtual WeightLease acquire(const ParameterGroup& group) = 0;

  // Single rows of a dense table, as read_rows() has them: of a table of gigabytes only these are read, and
  // none of it is kept.
  virtual at::Tensor rows(const Parameter& table, std::span<const std::int64_t> ids) = 0;

  // Throws if a file changed since it was opened, so that what was computed from it cannot be trusted.
  virtual void check() const = 0;

  virtual Bytes bytes_read() const = 0;
};

// Slots look into the mapping, nothing is copied except tensors whose address does not suit their dtype, for
// the time of the lease.  `table` and `files` must describe the same checkpoint; components share `files`.
std::unique_ptr<WeightSource> make_weight_source(const ComponentTable& table,
                                                 std::shared_ptr<const bytes::MappedCheckpoint> files);

}  // namespace sluice::weights
