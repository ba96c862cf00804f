// The ring over loads of a file, as a staged source has it.
#include "bytes/plan/plan_pieces.h"
#include "support/synthetic_file.h"
#include "weights/stage_ring/stage_ring.h"

#include <sluice/sinks.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>
#include <random>

namespace sluice::weights {
namespace {

// Spoils a place when it is released.
class Loads final : public FillEngine {
 public:
  Loads(const Checkpoint& checkpoint, std::size_t groups, std::size_t places, ReadOptions options)
      : options_(options), memory_(places) {
    for (std::size_t i = 0; i < groups; ++i)
      plans_.push_back(
          bytes::plan_pieces(checkpoint, std::span(checkpoint.find(fmt::format("group {}", i)), 1)));
  }

  void fill(std::size_t group, std::size_t place, const CancelToken* cancel) override {
    const TargetTensor& target = plans_[group].targets().front();
    memory_[place].resize(target.size);
    const Destination destination{target.name, target.dtype, target.shape, memory_[place]};
    load_into(plans_[group], std::span(&destination, 1), UnexpectedTensors::refuse, options_, nullptr,
              cancel);
  }
  void wait(std::size_t) override {}
  void release(std::size_t place) noexcept override {
    std::memset(memory_[place].data(), 0xee, memory_[place].size());
  }

  std::string_view at(std::size_t place) const {
    return {reinterpret_cast<const char*>(memory_[place].data()), memory_[place].size()};
  }

 private:
  const ReadOptions options_;
  std::vector<LoadPlan> plans_;
  std::vector<std::vector<std::byte>> memory_;
};

TEST(LoadRing, gives_the_files_bytes_with_any_backend_and_number_of_threads) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 10; ++round) {
    const std::size_t groups = 2 + random() % 5, slots = 1 + random() % 3;
    test::SyntheticFile file;
    std::vector<std::pair<std::size_t, std::size_t>> extents;
    for (std::size_t i = 0; i < groups; ++i) {
      const std::size_t begin = file.data().size();
      file.tensor(fmt::format("group {}", i), Dtype::U8, {1 + static_cast<std::int64_t>(random() % 300'000)});
      extents.emplace_back(begin, file.data().size() - begin);
    }
    const auto written = file.write();
    StageShape shape{std::vector<bool>(groups, false), slots, 3};
    shape.resident[random() % groups] = true;
    const ReadBackend backend = std::array{ReadBackend::automatic, ReadBackend::mmap, ReadBackend::pread,
                                           ReadBackend::uring}[random() % 4];
    Loads loads(Checkpoint::open(written.path()), groups, groups + slots,
                {.backend = backend,
                 .threads = static_cast<unsigned>(random() % 4),
                 .chunk = KiB(64),
                 .pool = KiB(256)});
    StageRing ring(loads, shape, [](const std::string&) {});
    for (std::size_t i = 0; i < 3 * groups; ++i) {
      const auto [begin, size] = extents[i % groups];
      const std::size_t place = ring.acquire(i % groups);
      ASSERT_EQ(loads.at(place), std::string_view(file.data()).substr(begin, size));
      ring.release(i % groups);
    }
  }
}

}  // namespace
}  // namespace sluice::weights
