// stream_tensors CHECKPOINT [GLOB]: two loads of the tensors that match.
//   1. Past a consumer: every tensor's sum of bytes, with 32 MiB of buffers, however large the file.
//   2. Into memory that is used again: the second load finds its pages touched and shows what the disk can
//   do.
#include <sluice/error.h>
#include <sluice/load.h>
#include <sluice/sinks.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

namespace {

// Takes the bytes as they come; a sink that has memory of its own hands it out in destination() instead.
class SumSink final : public sluice::TensorSink {
 public:
  explicit SumSink(const sluice::LoadPlan& plan) : plan_(plan), sums_(plan.targets().size()) {}

  std::span<std::byte> destination(std::size_t) override { return {}; }

  void take(std::size_t target, sluice::Bytes, std::span<const std::byte> bytes) override {
    for (std::byte byte : bytes) sums_[target] += std::to_integer<std::uint64_t>(byte);
  }

  void complete(std::size_t target) override {
    std::printf("%20llu  %s\n", static_cast<unsigned long long>(sums_[target]),
                plan_.targets()[target].name.c_str());
  }

 private:
  const sluice::LoadPlan& plan_;
  std::vector<std::uint64_t> sums_;
};

void show(const char* what, const sluice::LoadReport& report) {
  std::printf("%s: %s in %.3f s, %.3f s of it for first touches, %llu reads\n", what,
              sluice::format_bytes(report.bytes).c_str(), report.seconds, report.touch_seconds,
              static_cast<unsigned long long>(report.requests));
  for (const auto& shard : report.shards) {
    std::printf("  %s: %s, %u threads: %s\n", shard.path.c_str(), shard.backend.c_str(), shard.threads,
                shard.reason.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: stream_tensors CHECKPOINT [GLOB]\n");
    return 2;
  }
  sluice::LoadRequest request;
  if (argc == 3) request.filter.include = {argv[2]};
  const sluice::LoadPlan plan = plan_load(sluice::Checkpoint::open(argv[1]), request);

  SumSink sums(plan);
  show("past a consumer", load(plan, sums, {.cache = sluice::CachePolicy::drop}));

  auto slab = std::make_shared<sluice::Slab>();
  for (const char* what : {"into new memory", "into the same memory"}) {
    sluice::LoadReport report;
    load_dictionary(plan, slab, {}, &report);
    show(what, report);
  }
  return 0;
} catch (const sluice::Error& error) {
  std::fprintf(stderr, "stream_tensors: %s\n  try: %s\n", error.what(), error.hint().c_str());
  return error_kind_info(error.kind()).exit_code;
}
