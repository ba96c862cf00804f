#pragma once
// generate() of the demo's clip, watched and stopped on the way, and what it leaves behind.

#include "pipeline/world.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::test {

class Watcher final : public Progress {
 public:
  using Observer = std::function<void(std::string_view phase, std::int64_t done, std::int64_t total)>;
  explicit Watcher(Observer observer) : observer_(std::move(observer)) {}
  void at(std::string_view phase, std::int64_t done, std::int64_t total, std::string_view) override {
    observer_(phase, done, total);
  }

 private:
  Observer observer_;
};

// Where a run is: what its progress says.
struct Moment {
  std::string phase;
  std::int64_t done = 0;
};

inline Outputs everything(const fs::path& folder, const std::string& name) {
  return {.video = folder / (name + ".mp4"),
          .wav = folder / (name + ".wav"),
          .latents = folder / (name + ".latents"),
          .trace = folder / (name + ".trace")};
}

inline testing::AssertionResult same_outputs(const Outputs& one, const Outputs& other) {
  for (auto file : {&Outputs::video, &Outputs::wav, &Outputs::latents, &Outputs::trace}) {
    if ((one.*file).empty() && (other.*file).empty()) continue;
    if (file_content(one.*file).empty() || file_content(one.*file) != file_content(other.*file))
      return testing::AssertionFailure() << one.*file << " and " << other.*file << " differ";
  }
  return testing::AssertionSuccess();
}

// Runs until then; returns whether it was stopped there.
inline bool stop_at(const Moment& moment, const Request& request, const Outputs& outputs) {
  CancelToken cancel;
  Watcher watcher([&](std::string_view phase, std::int64_t done, std::int64_t) {
    if (phase == moment.phase && done == moment.done) cancel.cancel();
  });
  try {
    generate(request, outputs, &watcher, &cancel);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::interrupted) throw;
    return true;
  }
  return false;
}

// Goes on from what is kept, and tells the moments of it.
inline std::vector<std::string> resume(const Request& request, Outputs outputs) {
  std::vector<std::string> moments;
  Watcher watcher([&](std::string_view phase, std::int64_t done, std::int64_t total) {
    moments.push_back(std::string(phase) + " " + std::to_string(done) + "/" + std::to_string(total));
  });
  outputs.resume = true;
  generate(request, outputs, &watcher);
  return moments;
}

}  // namespace sluice::test
