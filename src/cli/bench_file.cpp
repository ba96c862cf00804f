#include "cli/bench_file.h"

#include "base/disk_space.h"
#include "base/temporary_file.h"
#include "bytes/format/writer.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <unistd.h>

#include <array>
#include <random>

namespace sluice::cli {
namespace {

// One layer: its matrices and a few vectors.
constexpr std::array<Bytes, 6> kLayer = {MiB(8), MiB(8), KiB(8), MiB(16), KiB(8), KiB(32)};

std::vector<bytes::TensorSpec> tensors_of(Bytes size) {
  std::vector<bytes::TensorSpec> tensors;
  for (std::size_t i = 0; size > 0; ++i) {
    const Bytes piece = std::max<Bytes>(2, std::min(size, kLayer[i % kLayer.size()]) / 2 * 2);
    tensors.push_back({fmt::format("layers.{}.{}.weight", i / kLayer.size(), i % kLayer.size()),
                       Dtype::BF16,
                       {static_cast<std::int64_t>(piece / 2)}});
    size -= std::min(size, piece);
  }
  return tensors;
}

Bytes size_of(const std::vector<bytes::TensorSpec>& tensors) {
  Bytes size = 0;
  for (const bytes::TensorSpec& tensor : tensors) size += 2 * static_cast<Bytes>(tensor.shape.front());
  return size;
}

}  // namespace

BenchFile::BenchFile(const std::filesystem::path& folder, Bytes size, Progress& progress,
                     const CancelToken& cancel)
    : path_(folder / fmt::format("sluice-bench-{}.safetensors", ::getpid())) {
  check_target(path_, Existing::refuse);
  require_disk_space(path_, size + MiB(1));
  const std::vector<bytes::TensorSpec> tensors = tensors_of(size);
  const Bytes total = size_of(tensors);
  bytes::SafetensorsWriter writer(path_, tensors);
  std::vector<std::uint64_t> numbers(MiB(1) / sizeof(std::uint64_t));
  std::mt19937_64 random(1);
  for (Bytes done = 0; done < total;) {
    if (cancel.cancelled()) throw Error(ErrorKind::interrupted, "interrupted");
    for (std::uint64_t& number : numbers) number = random();
    const auto piece = std::as_bytes(std::span(numbers)).first(std::min<Bytes>(MiB(1), total - done));
    writer.append(piece);
    done += piece.size();
    progress.at("make a file", static_cast<std::int64_t>((done + MiB(1) - 1) >> 20),
                static_cast<std::int64_t>((total + MiB(1) - 1) >> 20), "MiB");
  }
  writer.finish();
}

BenchFile::~BenchFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace sluice::cli
