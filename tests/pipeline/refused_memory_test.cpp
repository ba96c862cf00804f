// Memory that is refused anywhere in a run: an answer with the phase, never a crash, and --resume goes on.
#include "kernels/memory_pool.h"
#include "pipeline/runs.h"
#include "support/failing_allocator.h"

#include <gmock/gmock.h>

#include <array>
#include <map>
#include <optional>
#include <random>
#include <string>

namespace sluice::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Matches;

constexpr std::array kPhases = {"text", "denoise", "decode sound", "decode video"};
constexpr int kPointsAPhase = 8;

Request short_request(int threads = 1) {
  Request request = demo_request();
  request.frames = 9;
  request.sigmas = {1.0, 0.6};
  request.threads = threads;
  return request;
}

// Tells which phase begins: at the first word of it, before it works.
class PhaseStart {
 public:
  explicit PhaseStart(std::function<void(const std::string& phase)> begins) : begins_(std::move(begins)) {}
  void operator()(std::string_view phase, std::int64_t, std::int64_t) {
    if (phase == phase_) return;
    phase_ = phase;
    begins_(phase_);
  }

 private:
  std::string phase_;
  std::function<void(const std::string&)> begins_;
};

// Allocations of each phase of an undisturbed run, from its first word to the next one's.
std::map<std::string, std::int64_t> allocations(const Request& request, const Outputs& outputs) {
  std::map<std::string, std::int64_t> counts;
  kernels::install_memory_pool();  // else the run would put it in place of the failing one
  FailingAllocator allocator;
  std::string phase;
  Watcher watcher(PhaseStart([&](const std::string& next) {
    if (!phase.empty()) counts[phase] = allocator.made();
    allocator.refuse_none();
    phase = next;
  }));
  generate(request, outputs, &watcher);
  counts[phase] = allocator.made();
  return counts;
}

// The error of a run in which the nth allocation of the phase is refused; empty: it completed.
std::optional<Error> run_refusing(const std::string& phase, std::int64_t nth, Refusal how,
                                  const Request& request, const Outputs& outputs) {
  FailingAllocator allocator;
  Watcher watcher(PhaseStart([&](const std::string& begun) {
    if (begun == phase) allocator.refuse(nth, how);
  }));
  try {
    generate(request, outputs, &watcher);
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

TEST(RefusedMemory, in_any_phase_is_told_and_the_run_can_be_resumed_to_the_same_bytes) {
  TemporaryFolder folder;
  const Outputs whole = everything(folder.path(), "whole");
  const auto counts = allocations(short_request(), whole);
  const auto seed = static_cast<std::uint32_t>(std::random_device()());
  std::mt19937 random(seed);
  int refused = 0;

  for (const std::string phase : kPhases) {
    for (int point = 0; point < kPointsAPhase; ++point) {
      const std::int64_t nth = 1 + static_cast<std::int64_t>(random() % counts.at(phase));
      const Refusal how = point % 3 == 0 ? Refusal::of_the_language : Refusal::of_libtorch;
      SCOPED_TRACE(phase + ", allocation " + std::to_string(nth) + ", seed " + std::to_string(seed));
      const Outputs made = everything(folder.path(), "clip");

      const auto error = run_refusing(phase, nth, how, short_request(), made);

      if (error) {
        ++refused;
        EXPECT_EQ(error->kind(), ErrorKind::does_not_fit) << error->what();
        EXPECT_THAT(error->what(), AllOf(HasSubstr("the phase '"), HasSubstr("out of memory")))
            << error->hint();
        EXPECT_FALSE(fs::exists(made.video));
        Outputs again = made;
        again.resume = fs::exists(made.video.string() + ".sluice-work");
        generate(short_request(), again);
      }
      EXPECT_TRUE(same_outputs(made, whole));
      for (auto file : {&Outputs::video, &Outputs::wav, &Outputs::latents, &Outputs::trace})
        fs::remove(made.*file);
    }
  }

  EXPECT_GT(refused, kPointsAPhase);  // some points lie where nothing is lost: work that could not be kept
  EXPECT_EQ(folder.names().size(), 4u);
}

TEST(RefusedMemory, tells_phase_size_and_remedy) {
  TemporaryFolder folder;
  const Request request = short_request(2);  // refused inside of parallel loops as well
  const auto counts = allocations(request, everything(folder.path(), "whole"));
  for (const std::string phase : kPhases) {
    const auto error = run_refusing(phase, counts.at(phase) / 2, Refusal::of_libtorch, request,
                                    everything(folder.path(), "clip " + phase));

    ASSERT_TRUE(error);
    EXPECT_THAT(error->what(),
                AllOf(HasSubstr("the phase '" + phase + "': out of memory: the system refused "),
                      HasSubstr("B more")));
    EXPECT_THAT(error->hint(), HasSubstr("smaller clip"));
    if (phase != "text") {
      EXPECT_THAT(error->hint(), HasSubstr("then run again with --resume"));
    }
  }
}

}  // namespace
}  // namespace sluice::test
