#include "weights/load_fills.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::weights {
namespace {

// A group ends with fewer reads in flight than the disk needs, for as long as the last ones take: they are to
// be a small share of it.  Groups of 200 MB read ahead, 1 MiB against 8 MiB a read: 2.1 to 1.8 GB/s
// direct, 2.9 to 2.4 GB/s with io_uring, where one load of all of them reaches 2.8 (2 cores, virtual disk).
constexpr Bytes kReadsOfGroup = 256;
constexpr Bytes kLeastRead = MiB(1);

class PlaceSink final : public TensorSink {
 public:
  PlaceSink(const GroupLoad& load, std::span<std::byte> place, bool fresh)
      : load_(load), place_(place), fresh_(fresh) {}

  std::span<std::byte> destination(std::size_t target) override {
    return place_.subspan(load_.layout.offsets[target], load_.plan.targets()[target].size);
  }
  bool destinations_are_fresh() const override { return fresh_; }
  void take(std::size_t, Bytes, std::span<const std::byte>) override {}  // every target has its place

 private:
  const GroupLoad& load_;
  const std::span<std::byte> place_;
  const bool fresh_;
};

}  // namespace

LoadFills::LoadFills(std::span<const GroupLoad> loads, std::span<const std::span<std::byte>> places,
                     ReadOptions options)
    : loads_(loads), places_(places), touched_(places.size(), 0), options_(options) {}

void LoadFills::fill(std::size_t group, std::size_t place, const CancelToken* cancel) {
  std::string warning;
  LoadReport report;
  try {
    report = load_into_place(group, place, cancel);
  } catch (const Error& error) {
    const bool has_another_way =
        options_.backend == ReadBackend::direct || options_.backend == ReadBackend::mmap;
    if (error.kind() != ErrorKind::io || !has_another_way) throw;
    warning = fmt::format("{}: reading through the page cache instead", error.what());
    options_.backend = ReadBackend::pread;
    report = load_into_place(group, place, cancel);
  }
  const std::lock_guard lock(mutex_);
  bytes_read_ += report.bytes;
  news_.reports.push_back(std::move(report));
  if (!warning.empty()) news_.warnings.push_back(std::move(warning));
}

LoadReport LoadFills::load_into_place(std::size_t group, std::size_t place, const CancelToken* cancel) {
  const GroupLoad& load = loads_[group];
  PlaceSink sink(load, places_[place], touched_[place] < load.layout.size);
  ReadOptions options = options_;
  options.chunk = std::min(options.chunk, std::max(kLeastRead, load.plan.read_bytes() / kReadsOfGroup));
  LoadReport report = sluice::load(load.plan, sink, options, nullptr, cancel);
  touched_[place] = std::max(touched_[place], load.layout.size);
  return report;
}

LoadFills::News LoadFills::take_news() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

Bytes LoadFills::bytes_read() const {
  const std::lock_guard lock(mutex_);
  return bytes_read_;
}

}  // namespace sluice::weights
