#pragma once
// What becomes of a checkpoint that is quantized, on paper: every source tensor with the tensors it turns
// into, and the shards that these lie in.  From names, shapes and dtypes alone.

#include "bytes/format/writer.h"
#include "weights/component.h"

#include <sluice/load.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sluice::weights {

// One tensor of the source.  Copied as it is where there is no format.
struct QuantizedSource {
  TargetTensor tensor;
  std::optional<QuantFormat> format;

  std::int64_t elements() const;
};

// What lies where the source's values are read, in order: nf4 has the absmax of its blocks behind the codes.
std::vector<bytes::TensorSpec> body_of(const QuantizedSource& source);
// What is small and of odd sizes, and lies behind all bodies so that these stay aligned: scales, code tables
// and quant_state.
std::vector<bytes::TensorSpec> tail_of(const QuantizedSource& source);

// The JSON of "L.weight.quant_state.bitsandbytes__nf4", as bitsandbytes writes it.
std::string nf4_quant_state(const TargetTensor& tensor);

struct QuantizedShard {
  std::string name;                        // "model-00001-of-00003.safetensors"
  std::size_t first = 0, last = 0;         // of QuantizedLayout::sources
  std::vector<bytes::TensorSpec> tensors;  // in the file's order: all bodies, then all tails
  Bytes source_bytes = 0;
  Bytes data_bytes = 0;
};

struct QuantizedLayout {
  std::vector<QuantizedSource> sources;  // in the order in which they are read
  std::vector<QuantizedShard> shards;

  std::size_t quantized() const;
  Bytes data_bytes() const;
};

// How files are named.
struct ShardNames {
  std::string stem = "model";
  bool always_numbered = true;  // false: a single shard is "<stem>.safetensors"
};

// Shards hold at most `shard_size` of data, or one tensor that is larger.
QuantizedLayout lay_out_quantized(std::vector<QuantizedSource> sources, Bytes shard_size,
                                  const ShardNames& names);

}  // namespace sluice::weights
