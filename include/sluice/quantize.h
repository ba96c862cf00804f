#pragma once
// A checkpoint of the family with its large matrices in 8 or 4 bits: docs/quantized-weights.md has the
// formats.
//
//   sluice::quantize({.input = "ltx-2.3-22b-dev.safetensors", .output = "ltx-2.3-22b-dev-nf4", .format =
//   sluice::QuantizeFormat::nf4});
//
// Reads, computes and writes at the same time, in memory that does not depend on the checkpoint's size.

#include <sluice/progress.h>
#include <sluice/read_options.h>
#include <sluice/units.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

enum class QuantizeFormat {
  fp8,  // F8_E4M3, one scale a matrix
  nf4,  // 4 bits, one scale for 64 values
};
std::string_view to_string(QuantizeFormat format);  // "fp8", "nf4"

// Components that have matrices to quantize: the linear layers of attention and feed-forward in their blocks.
enum class QuantizeComponent { transformer, text_encoder, connectors };
std::string_view to_string(QuantizeComponent component);  // as the folder of a diffusers layout

struct QuantizeRequest {
  // A published file, a folder of shards with an index, a diffusers folder, or the folder of a text encoder.
  std::filesystem::path input;
  // A folder; it appears when complete.  Until then "<output>.partial" beside it has what is done, and the
  // same request goes on there.
  std::filesystem::path output;
  QuantizeFormat format = QuantizeFormat::fp8;
  std::vector<QuantizeComponent> components;  // empty: transformer and text encoder, as far as they are there
  Bytes shard_size = GiB(2);                  // of output files, at most
  ReadBackend read_backend = ReadBackend::automatic;
  CachePolicy cache = CachePolicy::automatic;
  std::optional<Bytes> memory_limit;  // of this process; empty: 448 MiB beside what it holds
  bool overwrite = false;             // an earlier folder is replaced when the new one is complete
};

// Everything that is not quantized is copied bit for bit; metadata and configs are carried over, with
// "quantization" added.  The bytes follow from input, format, components and shard size alone.  Returns a
// summary as JSON.
// Errors by kind, before anything is written: usage (the output exists, a partial folder of another request),
// bad_input (not a checkpoint, already quantized, nothing to quantize), does_not_fit (memory, disk).  Then:
// non_finite naming file, tensor and element; io; interrupted, after which the same request goes on.
std::string quantize(const QuantizeRequest& request, Progress* progress = nullptr,
                     const CancelToken* cancel = nullptr);

}  // namespace sluice
