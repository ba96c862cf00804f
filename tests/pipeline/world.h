#pragma once
// Requests for the demo's model, small enough to be served in a moment.

#include <sluice/sluice.h>

#include <filesystem>

namespace sluice::test {

namespace fs = std::filesystem;

inline fs::path demo_model() {
  return SLUICE_SOURCE_DIR "/demo/model/ltx-2.3-demo.safetensors";
}

inline fs::path demo_text_encoder() {
  return SLUICE_SOURCE_DIR "/demo/model/text_encoder";
}

inline Request demo_request() {
  return {.model = demo_model(),
          .text_encoder = demo_text_encoder(),
          .prompt = "a red circle moves right on a navy background, high tone",
          .width = 64,
          .height = 64,
          .frames = 17,
          .variant = Variant::distilled,
          .compute_dtype = ComputeDtype::f32,
          .threads = 1};
}

}  // namespace sluice::test
