#include "weights/device_ring/device_ring.h"

#include "support/synthetic_file.h"
#include "support/throws_error.h"
#include "weights/device_ring/late_engine.h"

#include <sluice/load.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <random>
#include <string>

namespace sluice::weights {
namespace {

using test::SyntheticFile;
using test::ThrowsError;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Destinations = std::vector<std::vector<std::byte>>;

std::vector<std::byte> random_bytes(std::size_t size, std::mt19937& random) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Writes down what it is asked to do.
class NotingEngine : public CopyEngine {
 public:
  void copy(std::span<const std::byte> from, std::size_t to, Bytes offset) override {
    calls.push_back(fmt::format("copy {} to {} at {}", from.size(), to, offset));
  }
  void record(std::size_t slot) override { calls.push_back(fmt::format("record {}", slot)); }
  void wait(std::size_t slot) override { calls.push_back(fmt::format("wait {}", slot)); }
  void drain() noexcept override { calls.push_back("drain"); }

  std::vector<std::string> calls;
};

// What a ring that forgets to wait would do to a device.
class ImpatientEngine final : public LateEngine {
 public:
  using LateEngine::LateEngine;
  void wait(std::size_t) override {}
};

class Paces : public ::testing::TestWithParam<Pace> {};
INSTANTIATE_TEST_SUITE_P(Devices, Paces, ::testing::Values(Pace::when_waited_for, Pace::at_random),
                         [](const auto& param) {
                           return param.param == Pace::at_random ? "that_lag_at_random" : "that_lag_always";
                         });

TEST_P(Paces, get_every_byte_of_random_pieces_through_any_number_of_slots) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 40; ++round) {
    Slots slots(1 + random() % 4, 64 + random() % 300);
    Destinations wanted, got;
    for (unsigned i = 0; i < 3; ++i) {
      wanted.push_back(random_bytes(random() % 2000, random));
      got.emplace_back(wanted.back().size());
    }
    LateEngine engine(slots.spans(), got, GetParam(), random());
    DeviceRing ring(engine, slots.spans());

    for (std::size_t to = 0; to < wanted.size(); ++to) {
      for (std::size_t at = 0; at < wanted[to].size();) {
        const std::size_t size = std::min<std::size_t>(1 + random() % 500, wanted[to].size() - at);
        std::vector<std::byte> piece(size);
        std::memcpy(piece.data(), wanted[to].data() + at, size);
        ring.append(to, at, piece);
        at += size;
      }
    }
    ring.finish();

    ASSERT_EQ(got, wanted);
  }
}

TEST_P(Paces, get_what_is_appended_after_the_end_too) {
  Slots slots(2, 64);
  Destinations got(1, std::vector<std::byte>(200));
  std::mt19937 random(7);
  const auto wanted = random_bytes(200, random);
  LateEngine engine(slots.spans(), got, GetParam(), 7);
  DeviceRing ring(engine, slots.spans());

  ring.append(0, 0, std::span(wanted).first(90));
  ring.finish();
  ring.append(0, 90, std::span(wanted).subspan(90));
  ring.finish();
  ring.finish();

  EXPECT_EQ(got[0], wanted);
}

TEST(LateEngine, shows_a_missing_wait_as_wrong_bytes) {
  Slots slots(2, 64);
  Destinations got(1, std::vector<std::byte>(256));
  std::mt19937 random(7);
  const auto wanted = random_bytes(256, random);
  ImpatientEngine engine(slots.spans(), got, Pace::when_waited_for, 7);
  {
    DeviceRing ring(engine, slots.spans());
    ring.append(0, 0, wanted);
    ring.finish();
  }

  EXPECT_NE(got[0], wanted);
}

TEST(DeviceRing, waits_for_a_slot_only_before_it_fills_it) {
  Slots slots(3, 64);
  NotingEngine engine;
  DeviceRing ring(engine, slots.spans());
  const std::vector<std::byte> bytes(5 * 64);

  ring.append(0, 0, bytes);

  EXPECT_THAT(engine.calls, ElementsAre("copy 64 to 0 at 0", "record 0", "wait 1", "copy 64 to 0 at 64",
                                        "record 1", "wait 2", "copy 64 to 0 at 128", "record 2", "wait 0",
                                        "copy 64 to 0 at 192", "record 0", "wait 1", "copy 64 to 0 at 256"));
}

TEST(DeviceRing, lets_small_pieces_share_a_slot_at_cache_lines) {
  Slots slots(2, 192);
  NotingEngine engine;
  DeviceRing ring(engine, slots.spans());
  const std::vector<std::byte> bytes(10);

  for (std::size_t to = 0; to < 4; ++to) ring.append(to, 0, bytes);

  EXPECT_THAT(engine.calls, ElementsAre("copy 10 to 0 at 0", "copy 10 to 1 at 0", "copy 10 to 2 at 0",
                                        "record 0", "wait 1", "copy 10 to 3 at 0"));
}

TEST(DeviceRing, waits_for_all_slots_at_the_end) {
  Slots slots(3, 64);
  NotingEngine engine;
  DeviceRing ring(engine, slots.spans());
  ring.append(0, 0, std::vector<std::byte>(1));
  engine.calls.clear();

  ring.finish();

  EXPECT_THAT(engine.calls, ElementsAre("record 0", "wait 1", "wait 0", "wait 1", "wait 2"));
}

TEST(DeviceRing, is_done_with_its_slots_when_it_goes) {
  Slots slots(1, 64);
  NotingEngine engine;
  { DeviceRing ring(engine, slots.spans()); }

  EXPECT_THAT(engine.calls, ElementsAre("drain"));
}

// The bytes of a load, on a device that fails at its `fail_at`th copy, counted from 1; 0: never.
class RingSink final : public TensorSink {
 public:
  RingSink(const LoadPlan& plan, Pace pace, int fail_at) : plan_(plan), fail_at_(fail_at), slots_(3, 1000) {
    for (const TargetTensor& target : plan.targets()) destinations.emplace_back(target.size);
    engine_.emplace(slots_.spans(), destinations, pace, 7);
    ring_.emplace(*engine_, slots_.spans());
  }

  std::span<std::byte> destination(std::size_t) override { return {}; }
  void take(std::size_t target, Bytes offset, std::span<const std::byte> bytes) override {
    if (++taken_ == fail_at_)
      throw Error(ErrorKind::io, plan_.targets()[target].name + ": the device is gone");
    ring_->append(target, offset, bytes);
  }
  void finish() { ring_->finish(); }

  Destinations destinations;

 private:
  const LoadPlan& plan_;
  const int fail_at_;
  int taken_ = 0;
  Slots slots_;
  std::optional<LateEngine> engine_;
  std::optional<DeviceRing> ring_;
};

std::string_view as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_P(Paces, get_the_bytes_of_a_file) {
  const SyntheticFile file = SyntheticFile()
                                 .tensor("a", Dtype::U8, {200'003})
                                 .tensor("b", Dtype::F32, {3, 5})
                                 .tensor("c", Dtype::BF16, {70'000});
  const auto written = file.write();
  const LoadPlan plan = plan_load(Checkpoint::open(written.path()));
  RingSink sink(plan, GetParam(), 0);

  load(plan, sink, {.threads = 3, .chunk = KiB(64), .pool = KiB(256)});
  sink.finish();

  std::string got;
  for (const auto& destination : sink.destinations) got += as_text(destination);
  EXPECT_TRUE(got == file.data());
}

TEST_P(Paces, that_fail_end_the_load_with_their_error) {
  const auto written = SyntheticFile().tensor("a", Dtype::U8, {1'000'003}).write();
  const LoadPlan plan = plan_load(Checkpoint::open(written.path()));
  RingSink sink(plan, GetParam(), 4);

  EXPECT_THAT([&] { load(plan, sink, {.threads = 3, .chunk = KiB(64), .pool = KiB(256)}); },
              ThrowsError(ErrorKind::io, HasSubstr("a: the device is gone")));
}

}  // namespace
}  // namespace sluice::weights
