#include "bytes/format/audit.h"

#include "bytes/format/checkpoint_state.h"
#include "bytes/format/checksum.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace sluice::bytes {
namespace {

// Everything is done with such a piece while it lies in the processor's cache.
constexpr Bytes kPiece = KiB(256);

// Counts in pieces that may end inside an element.
class NonFiniteCounter {
 public:
  void begin(Dtype dtype) {
    dtype_ = dtype;
    element_ = judged_size(dtype);
    split_bytes_ = 0;
    found_ = {};
  }

  void add(std::span<const std::byte> bytes) {
    if (split_bytes_ > 0) {
      const Bytes missing = std::min<Bytes>(element_ - split_bytes_, bytes.size());
      std::memcpy(split_.data() + split_bytes_, bytes.data(), missing);
      split_bytes_ += missing;
      bytes = bytes.subspan(missing);
      if (split_bytes_ < element_) return;
      found_ += count_non_finite(dtype_, std::span(split_).first(element_));
    }
    const Bytes whole = bytes.size() / element_ * element_;
    found_ += count_non_finite(dtype_, bytes.first(whole));
    split_bytes_ = bytes.size() - whole;
    std::memcpy(split_.data(), bytes.data() + whole, split_bytes_);
  }

  NonFinite found() const { return found_; }

 private:
  Dtype dtype_ = Dtype::U8;
  Bytes element_ = 1;
  std::array<std::byte, 8> split_{};  // the first bytes of an element whose rest is yet to come
  Bytes split_bytes_ = 0;
  NonFinite found_;
};

// The order of the plan: tensors of a shard in the order of their bytes, which fill the file behind its
// header.
class AuditSink final : public TensorSink {
 public:
  AuditSink(const LoadPlan& plan, Audit& result)
      : checkpoint_(plan.checkpoint()), files_(CheckpointAccess::state(checkpoint_).files), result_(result) {
    const std::vector<TensorInfo>& tensors = checkpoint_.tensors();
    result_.tensors.resize(tensors.size());
    result_.files.resize(checkpoint_.shards().size());
    for (const TargetTensor& target : plan.targets())
      tensors_.push_back(static_cast<std::size_t>(checkpoint_.find(target.name) - tensors.data()));
    Bytes none = 0;
    covered_.assign(checkpoint_.shards().size(), none);
    for (const TensorInfo& tensor : tensors) covered_[tensor.shard] += tensor.size;
  }

  std::span<std::byte> destination(std::size_t) override { return {}; }

  void take(std::size_t target, Bytes offset, std::span<const std::byte> bytes) override {
    const TensorInfo& info = checkpoint_.tensors()[tensors_[target]];
    if (shard_ != info.shard) begin_file(info.shard);
    if (offset == 0) {
      tensor_sum_.reset();
      counter_.begin(info.dtype);
    }
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min<Bytes>(kPiece, bytes.size()));
      tensor_sum_.add(piece);
      file_sum_.add(piece);
      counter_.add(piece);
      bytes = bytes.subspan(piece.size());
    }
  }

  void complete(std::size_t target) override {
    TensorAudit& tensor = result_.tensors[tensors_[target]];
    if (checkpoint_.tensors()[tensors_[target]].size == 0) {
      tensor.checksum = Checksum().text();
      return;
    }
    tensor = {tensor_sum_.text(), counter_.found()};
  }

  void finish() {
    end_file();
    // Files of which nothing was to be read.
    for (std::size_t shard = 0; shard < result_.files.size(); ++shard) {
      if (!result_.files[shard].empty() || covered_[shard] > 0) continue;
      begin_file(shard);
      end_file();
    }
  }

 private:
  void begin_file(std::size_t shard) {
    end_file();
    shard_ = shard;
    file_sum_.reset();
    std::vector<std::byte> header(checkpoint_.shards()[shard].header_size);
    read_exact(files_[shard], header, 0, "the header");
    file_sum_.add(header);
  }

  void end_file() {
    if (!shard_) return;
    const Shard& shard = checkpoint_.shards()[*shard_];
    if (shard.header_size + covered_[*shard_] == shard.file_size) result_.files[*shard_] = file_sum_.text();
    shard_.reset();
  }

  const Checkpoint& checkpoint_;
  const std::vector<File>& files_;
  Audit& result_;
  std::vector<std::size_t> tensors_;  // index into Checkpoint::tensors() by that of the plan's targets
  std::vector<Bytes> covered_;        // bytes of a shard that belong to a tensor
  std::optional<std::size_t> shard_;  // the one that is being read
  Checksum tensor_sum_, file_sum_;
  NonFiniteCounter counter_;
};

}  // namespace

Audit audit(const Checkpoint& checkpoint, const ReadOptions& options, Progress* progress,
            const CancelToken* cancel) {
  Audit result;
  const LoadPlan plan = plan_load(checkpoint);
  AuditSink sink(plan, result);
  result.report = load(plan, sink, options, progress, cancel);
  sink.finish();
  return result;
}

}  // namespace sluice::bytes
