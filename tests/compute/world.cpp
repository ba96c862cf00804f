#include "compute/world.h"

#include <sluice/checkpoint.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>

namespace sluice::test {
namespace {

const fs::path kFixtures = SLUICE_SOURCE_DIR "/tests/fixtures";
const fs::path kDemo = SLUICE_SOURCE_DIR "/demo/model";

std::set<std::string> file_names(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

}  // namespace

fs::path fixture_file() {
  return kFixtures / "checkpoint/single_file/model.safetensors";
}

fs::path fixture_folder() {
  return kFixtures / "checkpoint/single_file/diffusers";
}

fs::path fixture_inject() {
  return kFixtures / "end_to_end/distilled/inject.safetensors";
}

fs::path demo_model() {
  return kDemo / "ltx-2.3-demo.safetensors";
}

fs::path demo_text_encoder() {
  return kDemo / "text_encoder";
}

Arguments fixture_flags() {
  return {"--width",   "96",        "--height",  "64", "--frames",        "17", "--no-audio",
          "--variant", "distilled", "--threads", "1",  "--compute-dtype", "f32"};
}

Arguments fixture_clip(const fs::path& model) {
  return with({"generate", "--model", model, "--inject", fixture_inject()}, fixture_flags());
}

Arguments demo_flags() {
  return {"--text-encoder", demo_text_encoder(),
          "--prompt",       "a red circle moves right on a navy background, high tone",
          "--width",        "64",
          "--height",       "64",
          "--frames",       "17",
          "--variant",      "distilled",
          "--threads",      "1"};
}

Arguments demo_clip() {
  return with({"generate", "--model", demo_model()}, demo_flags());
}

std::map<std::string, Values> read_values(const fs::path& file) {
  const Checkpoint checkpoint = Checkpoint::open(file);
  std::map<std::string, Values> tensors;
  for (const TensorInfo& info : checkpoint.tensors()) {
    std::vector<std::byte> bytes(info.size);
    checkpoint.read(info, bytes);
    Values values(static_cast<std::size_t>(info.elements()));
    if (info.dtype == Dtype::F32) {
      std::memcpy(values.data(), bytes.data(), bytes.size());
    } else if (info.dtype == Dtype::U8) {
      std::transform(bytes.begin(), bytes.end(), values.begin(),
                     [](std::byte byte) { return static_cast<float>(byte); });
    } else if (info.dtype == Dtype::I64) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::int64_t value = 0;
        std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
        values[i] = static_cast<float>(value);
      }
    } else {
      throw std::invalid_argument(info.name + " is of another dtype");
    }
    tensors.emplace(info.name, std::move(values));
  }
  return tensors;
}

testing::AssertionResult same_bytes(const fs::path& one, const fs::path& other) {
  for (const fs::path& file : {one, other}) {
    if (!fs::is_regular_file(file)) return testing::AssertionFailure() << file << " does not exist";
  }
  const std::string a = file_content(one), b = file_content(other);
  if (a == b) return testing::AssertionSuccess();
  const auto [at, ignored] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return testing::AssertionFailure() << one << " (" << a.size() << " bytes) and " << other << " (" << b.size()
                                     << ") differ from byte " << at - a.begin();
}

testing::AssertionResult same_files(const fs::path& one, const fs::path& other) {
  const auto names = file_names(one);
  if (names.empty()) return testing::AssertionFailure() << one << " holds no file";
  if (names != file_names(other))
    return testing::AssertionFailure() << one << " and " << other << " hold files of other names";
  for (const std::string& name : names) {
    if (auto same = same_bytes(one / name, other / name); !same) return same;
  }
  return testing::AssertionSuccess();
}

void copy_fixture_folder(const fs::path& folder) {
  fs::copy(fixture_folder(), folder, fs::copy_options::recursive);
}

}  // namespace sluice::test
