#pragma once
// Reads every byte of a checkpoint and says what it is: a checksum for each tensor and each file, and how
// many values are not finite.  Checksums do not depend on how the bytes are read.

#include "bytes/format/non_finite.h"

#include <sluice/load.h>

#include <string>
#include <vector>

namespace sluice::bytes {

struct TensorAudit {
  std::string checksum;  // XXH3-128 of the tensor's bytes
  NonFinite non_finite;
};

struct Audit {
  std::vector<TensorAudit> tensors;  // of the order of Checkpoint::tensors()
  // XXH3-128 of each shard's file, header included; empty where the file holds bytes of no tensor of the
  // checkpoint.
  std::vector<std::string> files;
  LoadReport report;
};

// Errors of load().
Audit audit(const Checkpoint& checkpoint, const ReadOptions& options = {}, Progress* progress = nullptr,
            const CancelToken* cancel = nullptr);

}  // namespace sluice::bytes
